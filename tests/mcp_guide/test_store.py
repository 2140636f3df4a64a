"""Documents are found, read, written and removed, and nothing outside their directories is touched."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from mcp_core import ToolFailure
from mcp_guide import folder
from mcp_guide.document import MAX_BYTES, answer, compose, read_document
from mcp_guide.store import PROJECT, USER, Store
from pace import PATIENCE


def write(file: Path, text: str | bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def create(store: Store, category: str, name: str, text: str = "text", *, replace: bool = False) -> bool:
    return store.create(category, name, text, title="", description="", tags=(), replace=replace) == "created"


def test_categories_and_documents_of_project_and_user_are_one_list(store: Store) -> None:
    listing = store.documents()
    assert listing["skipped"] == []
    assert [(d["category"], d["name"], d["title"], d["source"]) for d in listing["documents"]] == [
        ("git", "commits", "How to commit", "user"),
        ("style", "python", "Python style", "project"),
    ]
    assert store.documents("style")["documents"] == [
        {
            "category": "style",
            "name": "python",
            "title": "Python style",
            "description": "How Python is written here.",
            "tags": ["python", "style"],
            "source": "project",
        }
    ]


def test_the_project_s_document_comes_before_the_user_s(store: Store, project: Path) -> None:
    assert store.get("python", "style")["text"].startswith("# Python\n")
    (project / ".guide/style/python.md").unlink()
    assert store.get("python", "style")["text"] == "the user's python"


def test_what_is_missing_is_told_with_what_there_is(store: Store) -> None:
    for error, instruction, work in [
        ("there is no category 'x'", "There are: git, style.", lambda: store.get("y", "x")),
        ("there is no category 'x'", "There are: git, style.", lambda: store.documents("x")),
        ("there is no category 'x'", "There are: git, style.", lambda: store.search("a", "x", 5)),
        ("there is no document 'y' in style", "There are: python.", lambda: store.get("y", "style")),
        ("the project has no document 'commits' in git", "There are none yet.", lambda: store.remove("git", "commits")),
    ]:
        with pytest.raises(ToolFailure) as caught:
            work()
        assert (caught.value.error, caught.value.error_type, caught.value.instruction) == (
            error,
            "not_found",
            instruction,
        )


def test_a_search_finds_by_any_word_of_a_task_and_puts_the_best_first(store: Store, project: Path) -> None:
    write(project / ".guide/style/shell.md", "Nothing about Python. Be brief.\n" * 2)
    write(project / ".guide/how-to/release.md", "# Releasing\nTag it, then push.")
    assert [hit["name"] for hit in store.search("PYTHON brief", None, 10)] == ["python", "shell"]
    assert [hit["name"] for hit in store.search("python", "style", 1)] == ["python"]
    assert [hit["name"] for hit in store.search("how do I release?", None, 1)] == ["release"]
    assert [hit["name"] for hit in store.search("comit messages", None, 1)] == ["commits"]
    assert store.search("zebra", None, 10) == []
    (hit,) = store.search("reason", None, 10)
    assert (hit["category"], hit["lines"]) == ("git", ["Small, with a reason."])


def test_a_name_alone_is_enough_when_it_is_the_only_one(store: Store, project: Path) -> None:
    assert store.get("commits")["category"] == "git"
    write(project / ".guide/web/python.md", "x")
    with pytest.raises(ToolFailure, match=r"ambiguous: 'python' is in style, web \(Pass the category, too\.\)"):
        store.get("python")
    with pytest.raises(
        ToolFailure, match=r"there is no document 'x' \(There are: git/commits, style/python, web/python"
    ):
        store.get("x")


def test_what_can_mean_one_thing_is_that_and_the_rest_is_named(store: Store, project: Path) -> None:
    guide = project / ".guide"
    write(guide / "Style/How to Test.MD", "---\ntags: python, tests\n---\n# Testing")
    for file in ("top.md", "style/web/css.md", "style/naïve.md", "style/PYTHON.md", "notes.txt", ".hidden/x/y.md"):
        write(guide / file, "x")
    listing = store.documents("style")
    assert [(d["name"], d["tags"]) for d in listing["documents"]] == [
        ("how-to-test", ["python", "tests"]),
        ("python", []),
    ]
    assert listing["skipped"] == [
        "project: top.md (it should be <category>/<name>.md)",
        "project: style/naïve.md (names should be small letters, digits, - and _)",
        "project: style/python.md (PYTHON.md has the same name)",
        "project: style/web/css.md (it should be <category>/<name>.md)",
    ]
    assert store.get("how-to-test")["title"] == "Testing"
    assert create(store, "style", "how-to-test", "new", replace=True) is False
    assert (guide / "Style/How to Test.MD").read_text() == "new"
    assert store.remove("style", "how-to-test") == "removed"
    assert not (guide / "Style").exists()


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "",
        ".",
        "A",
        "a.md",
        "a\0",
        "a\n",
        "-a",
        "a-",
        "x" * 65,
        "ä",
        "~",
        "con:",
    ],
)
def test_a_name_cannot_be_a_path(store: Store, name: str) -> None:
    for work in (
        lambda: store.get("python", name),
        lambda: store.get(name, "style"),
        lambda: create(store, name, "x"),
        lambda: create(store, "style", name),
        lambda: store.remove("style", name),
    ):
        with pytest.raises(ToolFailure, match="invalid name"):
            work()


def test_links_are_neither_read_nor_listed_nor_written(store: Store, project: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "outside/secret.md", "secret")
    (project / ".guide/style/link.md").symlink_to(secret)
    (project / ".guide/linked").symlink_to(secret.parent)
    assert store.keys() == [("git", "commits"), ("style", "python")]
    assert store.documents()["skipped"] == [
        "project: linked (a link, or no file)",
        "project: style/link.md (a link, or no file)",
    ]
    for category, name in [("style", "link"), ("linked", "secret")]:
        assert (category, name) not in store.project.list_files()[0]
        with pytest.raises(ToolFailure, match="it leads elsewhere"):
            create(store, category, name, replace=True)
        with pytest.raises(ToolFailure, match="it leads elsewhere"):
            store.remove(category, name)
    assert secret.read_text() == "secret"


def test_a_project_s_folder_that_leads_out_of_it_is_no_folder(tmp_path: Path, home: Path) -> None:
    write(tmp_path / "outside/style/secret.md", "secret")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".guide").symlink_to(tmp_path / "outside")
    store = Store.of(project, home / ".guide")
    assert store.keys() == []
    assert ("style", "secret") not in store.project.list_files()[0]
    with pytest.raises(ToolFailure, match="it leads elsewhere"):
        create(store, "style", "new")


def test_the_users_folder_may_be_a_symbolic_link(tmp_path: Path) -> None:
    write(tmp_path / "dotfiles/style/mine.md", "mine")
    (tmp_path / "guide").symlink_to(tmp_path / "dotfiles")
    store = Store.of(tmp_path / "project", tmp_path / "guide")
    assert store.get("mine", "style")["text"] == "mine"


@pytest.mark.parametrize("folder", [".git", ".onetool", ".GIT"])
def test_nothing_is_written_where_it_may_come_to_run(tmp_path: Path, folder: str) -> None:
    store = Store.of(tmp_path / folder / "inner", tmp_path / "user")
    with pytest.raises(ToolFailure, match="nothing is written below"):
        create(store, "style", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_a_document_s_place_does_not_hang(store: Store, project: Path) -> None:
    os.mkfifo(project / ".guide/style/pipe.md")
    assert ("style", "pipe") not in store.project.list_files()[0]


def test_a_document_is_written_as_it_is_read(store: Store, project: Path) -> None:
    saved = store.create(
        "how-to", "release", "---\nnot front matter\n", title="Release: 1", description="d", tags=["x"], replace=False
    )
    assert saved == "created"
    assert store.get("release", "how-to") == {
        "category": "how-to",
        "name": "release",
        "title": "Release: 1",
        "description": "d",
        "tags": ["x"],
        "source": "project",
        "text": "---\nnot front matter\n",
    }
    assert store.remove("how-to", "release") == "removed"
    assert sorted(path.name for path in project.rglob("*")) == [".guide", "python.md", "style"]


def test_a_document_is_replaced_only_when_that_is_said(store: Store) -> None:
    assert create(store, "style", "new", "one") is True
    with pytest.raises(ToolFailure, match="style/new exists"):
        create(store, "style", "new", "two")
    assert create(store, "style", "new", "three", replace=True) is False
    assert store.get("new", "style")["text"] == "three"


def test_of_many_who_create_a_document_one_succeeds_and_nothing_is_left_over(store: Store, project: Path) -> None:
    made: list[bool] = []
    start = threading.Barrier(8)

    def attempt(number: int) -> None:
        start.wait(PATIENCE)
        result = answer(lambda: create(store, "race", "same", f"{number}" * 1000))
        made.append(result.success)
        assert result.success or result.error_type == "exists"

    async def race() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(anyio.to_thread.run_sync, attempt, number)

    anyio.run(race)
    assert made.count(True) == 1
    assert [path.name for path in (project / ".guide/race").iterdir()] == ["same.md"]
    assert len(set(store.get("same", "race")["text"])) == 1


def test_the_guide_s_documents_are_bounded_in_size(
    store: Store, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolFailure, match=r"style/big has more than 262,144 bytes"):
        create(store, "style", "big", "ä" * (MAX_BYTES // 2 + 1))
    write(project / ".guide/style/huge.md", b"x" * (MAX_BYTES + 1))
    write(project / ".guide/style/binary.md", b"\xff\xfe")
    with pytest.raises(ToolFailure, match="has more than"):
        store.get("huge", "style")
    with pytest.raises(ToolFailure, match="style/binary is not UTF-8"):
        store.get("binary", "style")
    listing = store.documents("style")
    assert [d["name"] for d in listing["documents"]] == ["python"]
    assert listing["skipped"] == [
        "project: style/binary is not UTF-8",
        "project: style/huge has more than 262,144 bytes",
    ]
    monkeypatch.setattr(folder, "MAX_DOCUMENTS", 3)
    with pytest.raises(ToolFailure, match="the guide is full"):
        create(store, "style", "fourth")
    assert not create(store, "style", "python", replace=True)


@pytest.mark.parametrize(
    "front",
    [
        "[" * 4000,
        "a: &a [*a]\ntags: *a",
        "title: [1]\ntags: {a: b}",
        "- list",
        "!!python/object:os.x {}",
        "a: b: c",
        "title: 1",
    ],
    ids=range(7),
)
def test_front_matter_that_is_none_harms_nothing(front: str) -> None:
    document = read_document("c", "n", "project", f"---\n{front}\n---\ntext")
    assert document["text"].endswith("text")
    assert (document["title"], document["tags"]) == ("n", [])


def test_a_document_without_front_matter_stays_as_it_is() -> None:
    assert compose("", "", (), "text") == "text"
    assert read_document("c", "n", "user", "# Head\nx")["title"] == "Head"


def test_the_environment_names_both_directories(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Store.here({}) == Store.of(tmp_path, home / ".guide")
    assert Store.here({PROJECT: "/p", USER: "~/mine"}) == Store.of(Path("/p"), home / "mine")
    assert Store.here({"OT_CWD": "/o"}).project == Store.of(Path("/o"), home).project
    assert Store.here({"OT_CWD": "/o", PROJECT: "/p"}).project == Store.of(Path("/p"), home).project


def test_an_unreachable_directory_is_a_result_without_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(os, "scandir", refuse)
    result = answer(Store.of(tmp_path, tmp_path / "user").keys)
    assert (result.error, result.error_type) == ("the documents cannot be reached: Permission denied", "io_error")
