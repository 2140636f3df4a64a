"""What programs execute on sight is not written by the model's programs, and each refusal says why."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from ot.config.paths import Paths
from ot.execution.locked_places import locked_places, pack_places
from ot.files.path_guard import PathGuard
from ot.files.protected_paths import HARMLESS, TABLE, NameRule
from ot.files.run_writes import AsksFirst, RunWrites, writes_of_run
from ot.proxied.executed_files import list_executed_files
from ot.proxied.spec import ServerSpec

EVERYDAY = Path(__file__).parent / "everyday_writes.yaml"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "protected-files.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


def write(guard: PathGuard, path: str | Path) -> None:
    with guard.open_for_writing(path) as file:
        file.write(b"written")


def append(guard: PathGuard, path: str | Path) -> None:
    with guard.open_for_appending(path):
        pass


def refused(guard: PathGuard, path: str | Path, why: str) -> None:
    for use in (write, append):
        with pytest.raises(PermissionError, match=why):
            use(guard, path)


# ---------------------------------------------------------------- the table

NAMED = [(name, row) for row in TABLE for name in row.names]


@pytest.mark.parametrize(("name", "row"), NAMED, ids=[name for name, _ in NAMED])
def test_every_name_of_the_table_is_refused_wherever_it_lies_with_the_reason_of_its_row(
    root: Path, name: str, row: NameRule
) -> None:
    path = name.replace("*", "x") + ("x" if name.endswith("/") else "")
    for given in (path, f"sub/{path}", f"a/b/{path.upper()}"):
        refused(PathGuard((root,)), given, row.why)
    assert list(root.iterdir()) == []


def test_the_page_shows_the_table_and_the_harmless_names() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = [f"| {row.title} | {row.why} |" for row in TABLE]
    assert "\n".join(rows) in page
    harmless = [f"| {what} | {', '.join(f'`{name}`' for name in names.split())} |" for what, names in HARMLESS.items()]
    assert "\n".join(harmless) in page


BY_TABLE = "is written below|is not written|a client's configuration"
EXECUTED_ON_SIGHT = """
    .hg/hgrc .hg/requires .jj/repo/config.toml .sl/config .svn/x .bzr/branch/branch.conf _darcs/prefs/defaults
    .fslckout mise.local.toml .mise.local.toml .mise/config.toml .config/mise/config.toml .config/mise.toml .rtx.toml
    mise.production.toml mise/config.toml .direnv/bin/ls .flox/env/manifest.toml .Rprofile .RData .irbrc .pryrc .ghci
    .iex.exs .lazy.lua .lvimrc .dir-locals.el .qwen/settings.json .factory/hooks.json .augment/x .pi/x crush.json
    .crush.json .clinerules/hooks/x .github/hooks/x.json .aider.conf.yml .goose/x .amp/settings.json .agents/skills/x
    .openhands/setup.sh .bsp/x.json .lsp/config.edn .vs/tasks.vs.json launch.vs.json x.sublime-project _vimrc
    ipython_config.py jupyter_server_config.py
"""


def test_what_version_control_shells_interpreters_editors_and_agents_execute_on_sight_is_refused(root: Path) -> None:
    guard = PathGuard((root,))
    for path in EXECUTED_ON_SIGHT.split():
        refused(guard, path, BY_TABLE)
        refused(guard, f"deep/{path}", BY_TABLE)
    assert not [*root.iterdir()]


def test_a_name_in_the_table_does_not_reach_names_that_only_look_alike(root: Path) -> None:
    for path in ("mise.d/x.toml", "hooks/x", "github/hooks/x", ".github/hooks.md", "promise.toml", "x/config.toml"):
        write(PathGuard((root,)), path)


# ---------------------------------------------------------------- names on no list

UNKNOWN = [".mytool", ".mytool/x", "a/b/.mytool", ".eslintrc.js", ".config/app", ".formatter.exs", ".tool-versions"]
SPELLINGS = [".MyTool", "\uff0emytool/x", ".my\u200ctool", ".git\\hooks", "..x", ".github/.x"]


def test_a_name_that_begins_with_a_dot_and_is_on_no_list_is_not_written_before_its_user_agrees(root: Path) -> None:
    guard = PathGuard((root,))
    for path in (*UNKNOWN, *SPELLINGS):
        for use in (write, append):
            with pytest.raises(AsksFirst, match="must agree first"):
                use(guard, path)
        with pytest.raises(AsksFirst), guard.place_to_change(path, make=True) as (directory, name):
            directory.make_child(name)
    assert not [*root.iterdir()]


def test_a_yes_holds_for_a_place_and_what_lies_below_it_and_for_no_other(root: Path) -> None:
    guard, writes = PathGuard((root,)), RunWrites()
    token = writes_of_run.set(writes)
    try:
        with pytest.raises(AsksFirst) as asked:
            guard.require_agreed(["plain", "a/.one/x", ".two", ".two/y"])
        assert [place.shown for place in asked.value.places] == ["a/.one", ".two"]
        writes.answers.update((place.path, "") for place in asked.value.places)
        for path in ("a/.one/x", "a/.one/deep/y", ".two/y"):
            write(guard, path)
        for path in (".one", "a/.three", "a/.one/.four"):
            with pytest.raises(AsksFirst):
                write(guard, path)
        refused(guard, ".two/.git/config", "hooks")
    finally:
        writes_of_run.reset(token)


def test_harmless_names_and_those_of_the_user_are_written_unasked(root: Path) -> None:
    guard = PathGuard((root,), harmless=(".mytool", ".Own*"))
    listed = [name for names in HARMLESS.values() for name in names.split()]
    for name in [*listed, ".mytool/x", ".ownrc", ".github/workflows/ci.yml", ".env.local", ".dockerignore"]:
        path = f"{name}x" if name.endswith("/") else name.replace("*", "x")
        write(guard, f"sub/{path}")
    for name in (".envrc", ".envrc.local", ".github/hooks/x", ".mytool/.git/x"):
        refused(guard, name, BY_TABLE)


def test_names_above_the_working_directory_are_not_the_programs_choice(root: Path) -> None:
    inner = root / ".local" / "work"
    inner.mkdir(parents=True)
    write(PathGuard((inner,)), "x")
    with pytest.raises(AsksFirst):
        write(PathGuard((root,)), ".local/work/x")


def test_of_the_everyday_writes_of_real_repositories_few_ask(tmp_path: Path) -> None:
    rows = [row for row in yaml.safe_load(EVERYDAY.read_text(encoding="utf-8")) if row["change"] != "delete"]
    asked: list[str] = []
    for row in rows:
        workspace = tmp_path / row["id"]
        workspace.mkdir()
        try:
            write(PathGuard((workspace,)), row["path"])
        except PermissionError:
            asked.append(row["path"])
    assert len(asked) <= len(rows) * 2 // 100, asked


ORDINARY = ["package.json", "pyproject.toml", "Makefile", ".env", ".pre-commit-config.yaml", ".github/workflows/x.yml"]


@pytest.mark.parametrize(
    "name",
    [
        *ORDINARY,
        "app.db",
        "travel-journal",
        "journal.md",
        "server.py",
        "src/index.js",
        "HEAD",
        "objects/x",
        "path.txt",
        "x.pthx",
    ],
)
def test_what_people_let_models_write_daily_is_written(root: Path, name: str) -> None:
    write(PathGuard((root,)), name)


@pytest.mark.parametrize("name", ["venv", ".venv", "node_modules", "env"])
def test_a_working_directory_inside_such_a_directory_stays_usable(root: Path, name: str) -> None:
    inner = root / name / "project"
    inner.mkdir(parents=True)
    (root / name / "pyvenv.cfg").touch()
    write(PathGuard((inner,)), "x")
    refused(PathGuard((inner,)), "node_modules/x", "npx and node prefer")
    write(PathGuard((root / name,)), "x")


@pytest.mark.parametrize("sign", ["pyvenv.cfg", "conda-meta"])
def test_a_virtual_environment_is_known_by_what_it_holds(root: Path, sign: str) -> None:
    (root / "env" / "bin").mkdir(parents=True)
    (root / "env" / sign).touch()
    (root / "door").symlink_to("env")
    for path in ("env/bin/python", "env/lib/new/x.py", "door/bin/python"):
        refused(PathGuard((root,)), path, "virtual environment")


# ---------------------------------------------------------------- git without .git


@pytest.mark.parametrize("last", ["HEAD", "objects/x", "refs/x", "head", "Objects/x", "refs./x"])
def test_the_write_that_would_complete_a_repository_is_refused_whichever_it_is(root: Path, last: str) -> None:
    guard = PathGuard((root,))
    for folder in ("docs", "."):
        names = [name for name in ("HEAD", "objects/x", "refs/x") if name[0].lower() != last[0].lower()]
        for name in (*names, "config"):
            write(guard, f"{folder}/{name}")
        refused(guard, f"{folder}/{last}", "git would take the directory for a repository")
        assert not (root / folder / last.split("/")[0]).exists()


@pytest.mark.parametrize("last", ["HEAD", "commondir"])
def test_a_repository_that_borrows_from_another_directory_is_not_completed_either(root: Path, last: str) -> None:
    guard = PathGuard((root,))
    write(guard, "docs/HEAD" if last == "commondir" else "docs/commondir")
    refused(guard, f"docs/{last}", "git would take the directory for a repository")


def test_nothing_is_written_to_a_repository_without_its_own_folder(root: Path) -> None:
    for name in ("objects", "refs", "hooks"):
        (root / "x.git" / name).mkdir(parents=True)
    (root / "x.git" / "HEAD").touch()
    for path in ("x.git/config", "x.git/HEAD", "x.git/hooks/post-update", "x.git/new/x"):
        refused(PathGuard((root,)), path, "git repository")
    refused(PathGuard((root / "x.git",)), "config", "git repository")


def test_programs_that_write_at_the_same_time_do_not_complete_a_repository(root: Path) -> None:
    guard = PathGuard((root,))

    def attempt(path: str) -> None:
        with suppress(PermissionError, FileNotFoundError):
            write(guard, path)

    with ThreadPoolExecutor(3) as pool:
        for turn in range(60):
            list(pool.map(attempt, [f"{turn}/{name}" for name in ("HEAD", "objects/x", "refs/x")]))
            found = {path.name for path in (root / str(turn)).iterdir()}
            assert not found >= {"HEAD", "objects", "refs"}


# ---------------------------------------------------------------- what servers execute


def guard_with(root: Path, cwd: str = "/", **server: Any) -> PathGuard:
    spec = ServerSpec("mine", "mine", workspace=str(root), cwd=cwd, **server)
    return PathGuard((root,), locked=lambda: list_executed_files(spec))


SERVER = "the server 'mine' executes it"
PYTHON = [("server.py", True), ("helper.py", True), ("pkg/x.py", True), ("pkg/x.so", True), ("x.js", False)]
NODE = [("server.js", True), ("lib/x.mjs", True), ("package.json", True), ("x.py", False), ("data.json", False)]
PROJECT = [
    ("app/main.py", True),
    ("app/x.js", True),
    ("app/pyproject.toml", True),
    ("app/x.md", False),
    ("x.py", False),
]


@pytest.mark.parametrize(
    ("command", "args", "paths"),
    [
        ("python3", ["{root}/server.py"], PYTHON),
        ("python3", ["-u", "{root}/server.py", "--verbose"], PYTHON),
        ("uv", ["run", "python", "{root}/server.py"], PYTHON),
        ("sh", ["-c", "cd / && exec python3 '{root}/server.py'"], PYTHON),
        ("sh", ["-c", "cd '{root}' && exec python3 server.py"], PYTHON),
        ("sh", ["-c", "cd '{root}' && exec python3 -m server"], PYTHON),
        ("node", ["--enable-source-maps", "{root}/server.js"], NODE),
        ("bun", ["--config={root}/server.js"], NODE),
        ("sh", ["{root}/run.sh"], [("run.sh", True), ("other.sh", False), ("x.py", False)]),
        ("{root}/bin/server", [], [("bin/server", True), ("bin/other", False)]),
        ("uv", ["--directory", "{root}/app", "run", "main"], PROJECT),
        ("uv", ["run", "--project={root}/app", "main"], PROJECT),
        ("npm", ["--prefix", "{root}/app", "start"], PROJECT),
        ("uvx", ["--from", "{root}/app", "main"], PROJECT),
        ("node", ["{root}/app"], PROJECT),
        ("python3", ["{root}/app", "{root}"], PROJECT),
        ("npx", ["-y", "@mcp/server-filesystem", "{root}"], [("x.js", False), ("package.json", False)]),
        ("uvx", ["mcp-server-git", "--repository", "{root}"], [("x.py", False)]),
        ("npx", ["-y", "server-sqlite", "{root}/notes.db"], [("notes.db", True), ("x.py", False)]),
    ],
)
def test_what_a_servers_command_or_arguments_name_is_not_written_and_mere_data_is(
    root: Path, command: str, args: list[str], paths: list[tuple[str, bool]]
) -> None:
    (root / "app").mkdir()
    given = tuple(word.format(root=root) for word in args)
    guard = guard_with(root, command=command.format(root=root), args=given)
    for path, locked in paths:
        if locked:
            refused(guard, path, SERVER)
        else:
            write(guard, path)


def test_a_module_is_sought_where_the_server_starts_and_where_its_environment_says(root: Path) -> None:
    refused(guard_with(root, command="python3", args=("-m", "server"), cwd=str(root)), "json.py", SERVER)
    refused(guard_with(root, command="sh", env={"PYTHONPATH": f"/x:{root}/lib"}), "lib/json.py", SERVER)
    (root / "hook.js").touch()
    refused(guard_with(root, command="node", env={"NODE_OPTIONS": f"--require {root}/hook.js"}), "hook.js", SERVER)
    write(guard_with(root, command="python3", args=("-m", "server"), cwd="/elsewhere", private=True), "json.py")


def test_a_script_behind_a_link_is_not_written_under_either_name(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "server.py").touch()
    (root / "link").symlink_to("real/server.py")
    (root / "folder").symlink_to("real")
    refused(guard_with(root, command="sh", args=(f"{root}/link",)), "real/server.py", SERVER)
    refused(guard_with(root, command="sh", args=(f"{root}/folder/server.py",)), "real/server.py", SERVER)
    refused(guard_with(root, command="sh", args=(f"{root}/folder/server.py",)), "folder/server.py", SERVER)


# ---------------------------------------------------------------- places of the machine


def machine(root: Path, home: Path) -> PathGuard:
    paths = Paths.of(root, home / ".onetool")
    return PathGuard((root,), locked=lambda: locked_places(paths, (root,), ()))


ABOVE = ["package.json", "pyproject.toml", "uv.toml", "deno.json", "PACKAGE.JSON", "pnpm-workspace.yaml"]


@pytest.mark.parametrize("name", ABOVE)
def test_in_each_directory_above_those_of_servers_launchers_find_no_project(home: Path, name: str) -> None:
    for root in (home, home.parent):
        refused(machine(root, home), home / name, "look there for a project to obey")
    (home / "project").mkdir()
    write(machine(home, home), home / "project" / name)


def test_in_the_home_directory_nothing_is_written_that_begins_with_a_dot(home: Path) -> None:
    for name in (".bashrc", ".config/app/x", ".ssh/authorized_keys", ".gitconfig", ".local/bin/git"):
        refused(machine(home, home), name, "programs read their settings there")
    write(machine(home, home), "project/.gitignore")
    (home / ".local" / "work").mkdir(parents=True)
    write(machine(home / ".local" / "work", home), "x")
    with pytest.raises(PermissionError):
        write(machine(home / ".local" / "work", home), home / ".bashrc")


def test_where_programs_are_found_none_is_written(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{root / 'bin'}{os.pathsep}{root}{os.pathsep}relative")
    refused(machine(root, home), "bin/git", "programs are started from there")
    write(machine(root, home), "x")


def test_files_of_packs_are_not_written_where_they_really_lie(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "mine").mkdir()
    (tmp_path / "link").symlink_to(root / "mine")
    (root / "installed_pack_x.py").touch()
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    modules = [("theirs", "installed_pack_x:TOOLS"), ("gone", "no_such_module_x")]
    guard = PathGuard((root,), locked=lambda: pack_places([("mine", tmp_path / "link")], modules))
    refused(guard, "mine/mine_tools.py", "the pack 'mine' is executed from there")
    refused(guard, "installed_pack_x.py", "the pack 'theirs' is executed from there")
    write(guard, "other.py")


# ---------------------------------------------------------------- what is shown


@pytest.mark.parametrize("use", [write, append])
def test_a_servers_own_directory_is_read_and_not_written(home: Path, use: Callable[..., None]) -> None:
    shown = home / ".onetool" / "homes" / "mine-1"
    shown.mkdir(parents=True)
    (shown / "page.txt").write_text("shown")
    (shown.parent / "other-1").mkdir()
    (home / ".onetool" / "trust.json").write_text("{}")
    for root in (home, home.parent / "elsewhere"):
        root.mkdir(exist_ok=True)
        guard = PathGuard((root,), hidden=(home / ".onetool",), shown=(shown,))
        with guard.open_for_reading(shown / "page.txt") as file:
            assert file.read() == b"shown"
        with guard.open_directory(shown) as directory:
            assert [entry.name for entry in directory.entries()] == ["page.txt"]
        for path in (shown / "page.txt", shown / "new"):
            with pytest.raises(PermissionError):
                use(guard, path)
        for path in (shown / "../../trust.json", shown / ".." / "other-1", shown.parent, home / ".onetool"):
            with pytest.raises(PermissionError):
                guard.status(path)
