"""The path guard, attacked."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ot.files import guarded_directory
from ot.files.guarded_directory import GuardedDirectory
from ot.files.path_guard import PathGuard
from ot.files.protected_paths import fold
from pace import PATIENCE

SECRET = "outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that no program may touch."""
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "x").write_text(SECRET)
    return directory


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    """An allowed directory, with links of every kind."""
    directory = tmp_path / "root"
    (directory / "a" / "b").mkdir(parents=True)
    (directory / "a" / "x").write_text("inside")
    (directory / "a" / "b" / "x").write_text("inside")
    for name, target in {
        "in": "a/b",
        "file-in": "a/x",
        "out": str(outside),
        "file-out": str(outside / "x"),
        "up": "../outside",
        "chain": "out",
        "deep": "a/../../outside",
        "magic": "/proc/self/cwd",
        "loop": "loop",
    }.items():
        (directory / name).symlink_to(target)
    return directory


@pytest.fixture
def step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system have no way to open a directory in one step without following links."""

    def fail(path: str) -> int:
        raise OSError(path)

    monkeypatch.setattr(guarded_directory, "open_real_directory", fail)


@pytest.fixture(params=["at once", "step by step"])
def guard(root: Path, request: pytest.FixtureRequest) -> PathGuard:
    if request.param == "step by step":
        request.getfixturevalue("step_by_step")
    return PathGuard((root,))


def read(guard: PathGuard, path: str | Path) -> str:
    with guard.open_for_reading(path) as file:
        return file.read().decode()


def write(guard: PathGuard, path: str | Path, text: str = "written") -> None:
    with guard.open_for_writing(path) as file:
        file.write(text.encode())


def append(guard: PathGuard, path: str | Path, text: str = "written") -> None:
    with guard.open_for_appending(path) as file:
        file.write(text.encode())


def names(guard: PathGuard, path: str | Path) -> list[str]:
    with guard.open_directory(path) as directory:
        return [entry.name for entry in directory.entries()]


def tree(directory: Path) -> dict[str, str]:
    """What is there, links not followed."""
    found: dict[str, str] = {}
    for path in sorted(directory.rglob("*")):
        kind = "link" if path.is_symlink() else "directory" if path.is_dir() else path.read_text()
        found[str(path.relative_to(directory))] = kind
    return found


ESCAPES = [
    "../outside/x",
    "a/../../outside/x",
    "a/b/../../../outside/x",
    "in/../../../outside/x",
    "..",
    "../",
    "a/../..",
    "./../outside/x",
    "a/./../../outside/./x",
    "{root}/../outside/x",
    "{outside}/x",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/x",
    "/dev/zero",
    "/dev/fd/0",
    "out/x",
    "file-out",
    "up/x",
    "chain/x",
    "deep/x",
    "magic/x",
    "loop",
    "loop/x",
    "a/b/../../out/x",
    "in/../../up/x",
    "~",
    "~/x",
    "~/../x",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_leads_out_of_the_root(guard: PathGuard, root: Path, outside: Path, path: str) -> None:
    given = path.format(root=root, outside=outside)
    inside_before, outside_before = tree(root), tree(outside.parent)
    for use in (read, write, append, names, PathGuard.status):
        with pytest.raises(PermissionError if not given.endswith(("/", "..")) else OSError):
            use(guard, given)
    assert (inside_before, outside_before) == (tree(root), tree(outside.parent))


PARTS = [
    "..",
    ".",
    "",
    "a",
    "b",
    "x",
    "new",
    "in",
    "file-in",
    "out",
    "file-out",
    "up",
    "chain",
    "deep",
    "magic",
    "loop",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=8), slash=st.booleans())
def test_whatever_the_path_only_the_inside_is_read_or_written(
    guard: PathGuard, root: Path, outside: Path, parts: list[str], slash: bool
) -> None:
    path = "/".join([str(root), *parts] if slash else parts)
    with suppress(OSError, ValueError):
        assert read(guard, path) != SECRET
    for use in (write, append):
        with suppress(OSError, ValueError):
            use(guard, path)
    assert tree(outside) == {"x": SECRET}
    assert sorted(path.name for path in root.parent.iterdir()) == ["outside", "root"]


def test_links_that_stay_inside_are_followed_for_reading(guard: PathGuard) -> None:
    assert "inside" == read(guard, "in/x") == read(guard, "file-in")
    assert names(guard, "in") == ["x"]


def test_two_dots_after_a_link_mean_the_parent_of_its_target_as_the_system_has_it(guard: PathGuard, root: Path) -> None:
    (root / "x").write_text("of the root")
    assert (root / "in" / ".." / "x").read_text() == read(guard, "in/../x") == "inside"


def test_a_short_chain_of_links_is_followed_and_a_long_one_refused(guard: PathGuard, root: Path) -> None:
    (root / "link0").symlink_to("a/x")
    for number in range(50):
        (root / f"link{number + 1}").symlink_to(f"link{number}")
    assert read(guard, "link10") == "inside"
    with pytest.raises(PermissionError, match=r"too many symbolic links \(more than 40\)"):
        read(guard, "link50")


def test_a_path_too_deep_to_keep_open_is_refused(guard: PathGuard, root: Path) -> None:
    write(guard, "d/" * 128 + "x")
    assert read(guard, "d/" * 128 + "x") == "written"
    for use in (read, write, names):
        with pytest.raises(PermissionError, match="more than 128 directories"):
            use(guard, "d/" * 1000 + "x")
    assert not (root / ("d/" * 129)).exists()


def test_a_link_into_another_allowed_root_is_followed(root: Path, outside: Path) -> None:
    assert read(PathGuard((root, outside)), "out/x") == SECRET


def test_absolute_paths_inside_a_root_are_allowed(guard: PathGuard, root: Path) -> None:
    assert read(guard, root / "a" / "x") == "inside"


def test_a_neighbour_whose_name_begins_like_the_root_is_outside(guard: PathGuard, root: Path) -> None:
    (root.parent / "root2").mkdir()
    (root.parent / "root2" / "x").write_text(SECRET)
    with pytest.raises(PermissionError, match="outside the allowed directories"):
        read(guard, root.parent / "root2" / "x")


def test_of_nested_roots_the_outer_one_counts_for_two_dots(root: Path) -> None:
    guard = PathGuard((root / "a" / "b", root))
    assert "inside" == read(guard, "../x") == read(guard, "x")


def test_the_home_directory_is_reached_by_its_sign_when_it_is_allowed(home: Path) -> None:
    (home / "x").write_text("at home")
    assert read(PathGuard((home,)), "~/x") == "at home"


def test_even_where_everything_is_allowed_protected_names_are_not_written(root: Path) -> None:
    guard = PathGuard((Path("/"),))
    assert read(guard, f"/proc/self/root/{root}/a/x") == "inside"
    with pytest.raises(IsADirectoryError):
        write(guard, ".")
    with pytest.raises(PermissionError, match=r"below \.git"):
        write(guard, f"/proc/self/root/{root}/.git/x")


def test_a_guard_without_a_root_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="at least one root"):
        PathGuard(())


# ---------------------------------------------------------------- roots that are links


def test_a_root_that_is_a_link_works_under_both_names(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    guard = PathGuard((link,))
    assert "inside" == read(guard, "a/x") == read(guard, link / "a" / "x") == read(guard, root / "a" / "x")


def test_a_root_that_is_a_link_stays_where_it_pointed_when_the_guard_was_made(root: Path, outside: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    guard = PathGuard((link,))
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(FileNotFoundError):
        read(guard, "x")
    assert read(guard, "a/x") == "inside"


def test_a_link_put_in_the_place_of_a_root_is_not_followed(root: Path, outside: Path) -> None:
    guard = PathGuard((root,))
    root.rename(root.parent / "moved")
    root.symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        read(guard, "x")


# ---------------------------------------------------------------- races


@contextmanager
def swapped_again_and_again(one: Path, other: Path) -> Generator[None]:
    """Meanwhile the two paths change places, each time at one stroke."""
    here, exchange = -100, 2
    libc = ctypes.CDLL(None, use_errno=True)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            assert libc.renameat2(here, bytes(one), here, bytes(other), exchange) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)


def test_a_link_swapped_in_by_another_thread_never_leads_out(guard: PathGuard, root: Path, outside: Path) -> None:
    (root / "swap").mkdir()
    (root / "swap" / "x").write_text("inside")
    (root / "evil").symlink_to(outside)
    done = {True: 0, False: 0}
    with swapped_again_and_again(root / "swap", root / "evil"):
        for turn in range(2000):
            for use in (read, append, names, *((write,) if turn % 10 == 0 else ())):
                try:
                    found = use(guard, "swap/x" if use is read else "swap" if use is names else "swap/y")
                except OSError:
                    done[False] += 1
                else:
                    assert found in (None, "inside", ["x"], ["x", "y"])
                    done[True] += 1
    assert tree(outside) == {"x": SECRET}
    assert all(done.values())  # else nothing was swapped, and nothing is proven


def after(monkeypatch: pytest.MonkeyPatch, method: str, name: str, attack: Callable[[], object]) -> None:
    """Let *attack* happen right after the guard has looked at *name*, the worst moment there is."""
    look: Callable[[GuardedDirectory, str], object] = getattr(GuardedDirectory, method)

    def looked(directory: GuardedDirectory, at: str) -> object:
        found = look(directory, at)
        if at == name:
            attack()
        return found

    monkeypatch.setattr(GuardedDirectory, method, looked)


def replace_by_link(path: Path, target: Path) -> None:
    if not path.is_symlink():
        path.rename(path.parent / "moved")
        path.symlink_to(target)


@pytest.mark.usefixtures("step_by_step")
def test_a_directory_swapped_for_a_link_between_check_and_use_is_refused(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = PathGuard((root,))
    after(monkeypatch, "link_target", "a", lambda: replace_by_link(root / "a", outside))
    with pytest.raises(NotADirectoryError):
        read(guard, "a/x")


@pytest.mark.parametrize("swapped", [".", "a", "a/b"])
def test_a_directory_swapped_for_a_link_before_it_is_opened_in_one_step_is_not_followed(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    (outside / "b").mkdir()
    (outside / "b" / "x").write_text(SECRET)
    opened, guard, whole = guarded_directory.open_real_directory, PathGuard((root,)), list[str]()

    def swap_and_open(path: str) -> int:
        whole.append(path)
        replace_by_link((root / swapped).absolute(), outside)
        return opened(path)

    monkeypatch.setattr(guarded_directory, "open_real_directory", swap_and_open)
    with pytest.raises(OSError):
        read(guard, "a/b/x")
    assert whole == [str(root / "a" / "b")]


@pytest.mark.parametrize("moment", ["link_target", "_stat"])
def test_a_file_swapped_for_a_link_between_check_and_use_is_refused(
    guard: PathGuard, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    after(monkeypatch, moment, "x", lambda: replace_by_link(root / "a" / "x", outside / "x"))
    with pytest.raises(PermissionError, match="link"):
        read(guard, "a/x")


@pytest.mark.parametrize("use", [write, append])
def test_a_file_swapped_for_a_link_before_it_is_written_is_not_followed(
    guard: PathGuard, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[..., None]
) -> None:
    after(monkeypatch, "_stat", "x", lambda: replace_by_link(root / "a" / "x", outside / "x"))
    with suppress(PermissionError):
        use(guard, "a/x")
    assert (outside / "x").read_text() == SECRET


def test_a_fifo_swapped_in_for_a_file_does_not_hang(
    guard: PathGuard, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap() -> None:
        (root / "a" / "x").unlink()
        os.mkfifo(root / "a" / "x")

    after(monkeypatch, "_stat", "x", swap)
    with pytest.raises(PermissionError, match="neither a file nor a directory"):
        read(guard, "a/x")


# ---------------------------------------------------------------- protected places

PROTECTED = [
    *[
        ".onetool/onetool.yaml",
        ".onetool/tools/x/x_tools.py",
        ".ONETOOL/onetool.yaml",
        ".OneTool/x",
        ".onetool",
        ".git/hooks/pre-commit",
        ".git/config",
        ".Git/config",
        "a/.git/config",
        ".git",
        "a/.GIT",
        ".git./hooks/x",
        "a/b/../.git/x",
        ".git::$INDEX_ALLOCATION/x",
        "GIT~1/hooks/x",
        "onetoo~1/x",
        "new/directory/.git/hooks/x",
        ".mcp.json",
        ".MCP.json",
        "a/.mcp.json",
        ".mcp.json/x",
        ".mcp.json.",
        "mcp.json",
        "MCP~1.JSO",
        ".cursor/mcp.json",
        ".vscode/mcp.json",
        ".vscode/settings.json",
        ".claude/settings.json",
        ".Claude/hooks/x",
        ".claude.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".zed/settings.json",
        ".windsurf/x",
        "claude_desktop_config.json",
        ".codeium/windsurf/mcp_config.json",
        ".config/zed/settings.json",
        "opencode.json",
        "a/.claude/worktrees/x/.mcp.json",
    ],
    ".git /x",
    ".g\u200cit/x",
    "\uff0egit/x",
]


@pytest.mark.parametrize("path", PROTECTED)
def test_nothing_is_written_where_a_write_would_become_code_or_configuration(
    guard: PathGuard, root: Path, path: str
) -> None:
    before = tree(root)
    for use in (write, append):
        with pytest.raises(PermissionError, match=r"nothing is written below|client's configuration"):
            use(guard, path)
    assert before == tree(root)


@pytest.mark.parametrize("directory", [".git", ".onetool", ".claude", ".cursor"])
@pytest.mark.parametrize("link", ["relative", "absolute"])
def test_a_link_to_a_protected_directory_is_no_way_round(
    guard: PathGuard, root: Path, directory: str, link: str
) -> None:
    (root / directory).mkdir()
    (root / "door").symlink_to(directory if link == "relative" else root / directory)
    for path in ("door/x", "a/../door/x", "door/new/x"):
        with pytest.raises(PermissionError):
            write(guard, path)
    assert list((root / directory).iterdir()) == []


def test_a_root_inside_a_protected_directory_cannot_be_written(root: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    with pytest.raises(PermissionError, match=r"below \.git"):
        write(PathGuard((root / ".git" / "hooks",)), "pre-commit")


ORDINARY = [
    ".github/workflows/ci.yml",
    ".gitignore",
    ".env",
    "git/x",
    "AGENTS.md",
    "x~1",
    "a:b",
    "ü",
    ".claude/worktrees/task/src/x.py",
    ".cursor/worktrees/task/x",
]


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_with_similar_names_can_be_written(guard: PathGuard, path: str) -> None:
    write(guard, path)
    append(guard, path, " twice")
    assert read(guard, path) == "written twice"


@given(st.text(alphabet=".gitGIToneltmp~12: \u200c\uff0eÄ", max_size=12))
def test_folding_a_name_twice_changes_nothing_more(name: str) -> None:
    assert fold(name) == fold(fold(name))


# ---------------------------------------------------------------- what may not be read

PRIVATE = [
    ".onetool/secrets.yaml",
    ".OneTool/Secrets.yaml",
    ".onetool/config/secrets-of-work.yaml",
    "a/.onetool/secrets.env",
    ".onetool/secrets/key",
    ".onetool/tmp/result-x.txt",
    ".onetool/sessions/1",
    ".onetool/stats/stats.db",
]


@pytest.mark.parametrize("path", PRIVATE)
def test_secrets_and_what_belongs_to_callers_is_not_read(guard: PathGuard, root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text("TOKEN: abc")
    (root / "door").symlink_to(path)
    for way in (path, "door"):
        for use in (read, PathGuard.status, write):
            with pytest.raises(PermissionError):
                use(guard, way)


def test_private_entries_are_not_listed(guard: PathGuard, root: Path) -> None:
    for name in ("secrets.yaml", "onetool.yaml"):
        (root / ".onetool" / name).parent.mkdir(exist_ok=True)
        (root / ".onetool" / name).write_text("x: 1")
    (root / ".onetool" / "tmp").mkdir()
    assert names(guard, ".onetool") == ["onetool.yaml"]
    with pytest.raises(PermissionError, match="use the handle"):
        names(guard, ".onetool/tmp")


def test_settings_of_the_project_and_the_users_own_env_file_can_be_read(guard: PathGuard, root: Path) -> None:
    (root / ".onetool").mkdir()
    (root / ".onetool" / "onetool.yaml").write_text("version: 1")
    (root / ".env").write_text("A=1")
    assert (read(guard, ".onetool/onetool.yaml"), read(guard, ".env")) == ("version: 1", "A=1")


def test_what_is_hidden_can_be_reached_under_no_name(root: Path) -> None:
    hidden = root / "keys" / "mine.yaml"
    hidden.parent.mkdir()
    hidden.write_text("TOKEN: abc")
    (root / "soft").symlink_to("keys/mine.yaml")
    (root / "hard").hardlink_to(hidden)
    guard = PathGuard((root,), hidden=(hidden,))
    for path in ("keys/mine.yaml", "soft", "hard", "keys/MINE.yaml"):
        with pytest.raises(PermissionError, match="private to the server"):
            read(guard, path)
    with pytest.raises(PermissionError):
        write(guard, "keys/mine.yaml")
    assert names(guard, "keys") == []


def test_a_process_that_looks_by_itself_is_sent_into_no_directory_of_settings(root: Path) -> None:
    (root / ".onetool" / "packs").mkdir(parents=True)
    (root / "link").symlink_to(".onetool")
    for path in (".onetool", ".onetool/packs", "link"):
        with pytest.raises(PermissionError, match="only the pack file looks into"):
            PathGuard((root,)).find_directory(path)
    assert PathGuard((root / ".onetool",)).find_directory("packs").hidden == ()


def test_a_hidden_file_that_does_not_exist_is_in_nobodys_way(root: Path) -> None:
    (root / "hard").hardlink_to(root / "a" / "x")
    assert read(PathGuard((root,), hidden=(root / "none",)), "hard") == "inside"


def test_a_hidden_directory_hides_all_below_it(root: Path) -> None:
    guard = PathGuard((root,), hidden=(root / "a",))
    for use in (read, write, PathGuard.status):
        with pytest.raises(PermissionError, match="private to the server"):
            use(guard, "a/b/x")


# ---------------------------------------------------------------- hard links


def test_writing_one_name_of_a_file_leaves_its_other_names_alone(guard: PathGuard, root: Path, outside: Path) -> None:
    (root / "hard").hardlink_to(outside / "x")
    write(guard, "hard")
    assert ((outside / "x").read_text(), read(guard, "hard")) == (SECRET, "written")


def test_nothing_is_appended_to_a_file_with_other_names(guard: PathGuard, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]")
    (root / "hard").hardlink_to(root / ".git" / "config")
    with pytest.raises(PermissionError, match="hard links"):
        append(guard, "hard")
    assert (root / ".git" / "config").read_text() == "[core]"


# ---------------------------------------------------------------- special files and odd names


def test_pipes_sockets_and_devices_are_refused(guard: PathGuard, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket"))
        for path in ("pipe", "socket"):
            for use in (read, write, append):
                with pytest.raises(PermissionError, match="neither a file nor a directory"):
                    use(guard, path)
    for device in ("zero", "null", "tty"):
        with pytest.raises(PermissionError, match="neither a file nor a directory"):
            read(PathGuard((Path("/dev"),)), device)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is empty"),
        ("a\0/x", "NUL"),
        ("n" * 256, "too long"),
        ("ü" * 128, "too long"),
        ("n/" * 2048, "too long"),
        ("half \ud800", "an unpaired surrogate"),
        ("\udc80", "an unpaired surrogate"),
    ],
)
def test_text_that_cannot_be_a_path_is_refused_as_such(guard: PathGuard, path: str, why: str) -> None:
    for use in (read, write, append, names, PathGuard.status):
        with pytest.raises(ValueError, match=why) as caught:
            use(guard, path)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("path", [None, 3, b"a/x", ["a"]])
def test_what_is_not_text_is_not_a_path(guard: PathGuard, path: str) -> None:
    with pytest.raises(TypeError):
        read(guard, path)


@pytest.mark.parametrize(
    "path", ["n" * 255, "übung/日本語 \U0001f600", "with\nline", "back\\slash", "...", "-rf", "a. "]
)
def test_odd_names_are_names_like_any_other(guard: PathGuard, path: str) -> None:
    write(guard, path)
    assert read(guard, path) == "written"


def test_a_name_that_no_reply_could_carry_is_not_listed(guard: PathGuard, root: Path) -> None:
    (root / "a" / os.fsdecode(b"\xff")).write_text("x")
    assert names(guard, "a") == ["b", "x"]


@pytest.mark.parametrize("path", ["a", ".", "a/", "a/.", "a/b/..", "new/"])
def test_a_path_that_names_a_directory_is_not_a_file(guard: PathGuard, root: Path, path: str) -> None:
    before = tree(root)
    for use in (read, write, append):
        with pytest.raises(IsADirectoryError):
            use(guard, path)
    assert before == tree(root)


def test_a_file_is_not_a_directory(guard: PathGuard) -> None:
    for use in (read, write, names):
        with pytest.raises(NotADirectoryError, match="'a/x/y'"):
            use(guard, "a/x/y")
    with pytest.raises(NotADirectoryError):
        names(guard, "a/x")


# ---------------------------------------------------------------- writing


def test_missing_directories_are_made(guard: PathGuard) -> None:
    write(guard, "new/one/x")
    append(guard, "new/two/x")
    assert "written" == read(guard, "new/one/x") == read(guard, "new/two/x")


def test_two_dots_behind_a_missing_directory_make_nothing(guard: PathGuard, root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write(guard, "new/../x")
    assert not (root / "new").exists()


def test_a_link_is_not_written_through(guard: PathGuard, root: Path) -> None:
    for use in (write, append):
        with pytest.raises(PermissionError, match="symbolic link"):
            use(guard, "file-in")
    assert (root / "file-in").is_symlink()
    assert read(guard, "a/x") == "inside"


def test_a_link_to_a_directory_inside_can_be_written_below(guard: PathGuard, root: Path) -> None:
    write(guard, "in/new")
    assert (root / "a" / "b" / "new").read_text() == "written"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(guard: PathGuard, root: Path) -> None:
    before = tree(root)
    with pytest.raises(RuntimeError), guard.open_for_writing("a/x") as file:
        file.write(b"half")
        raise RuntimeError
    assert before == tree(root)


def test_a_reader_meets_the_old_file_or_the_new_one_never_a_part(guard: PathGuard) -> None:
    write(guard, "x", "0" * 100_000)
    seen: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(read(guard, "x"))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for digit in "123456789" * 5:
            write(guard, "x", digit * 100_000)
    finally:
        done.set()
        thread.join(PATIENCE)
    assert {100_000} == {len(text) for text in seen}
    assert all(text == text[0] * 100_000 for text in seen)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_keeps_its_mode(guard: PathGuard, root: Path, mode: int) -> None:
    (root / "a" / "x").chmod(mode)
    write(guard, "a/x")
    assert mode == stat.S_IMODE((root / "a" / "x").stat().st_mode)


def test_a_new_file_has_the_mode_that_the_umask_leaves(guard: PathGuard, root: Path) -> None:
    before = os.umask(0o027)
    try:
        write(guard, "new/x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "new" / "x").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_another_user_stays_theirs(guard: PathGuard, root: Path) -> None:
    os.chown(root / "a" / "x", 12345, 54321)
    write(guard, "a/x")
    found = (root / "a" / "x").stat()
    assert (found.st_uid, found.st_gid) == (12345, 54321)


# ---------------------------------------------------------------- what is told, what is left behind


def test_a_refusal_names_the_path_as_given_the_reason_and_three_roots_at_most(root: Path, tmp_path: Path) -> None:
    roots = (root, *(tmp_path / str(number) for number in range(4)))
    with pytest.raises(PermissionError) as caught:
        read(PathGuard(roots), "a/../../x")
    allowed = f"{root}, {tmp_path / '0'}, {tmp_path / '1'} and 2 more"
    assert f"'a/../../x': it is outside the allowed directories (allowed: below {allowed})" == str(caught.value)


def test_a_missing_file_is_told_with_the_path_as_given_and_where_paths_start(guard: PathGuard, root: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        read(guard, "a/none")
    assert f"'a/none' does not exist (relative paths start at {root})" == str(caught.value)


def test_a_full_disk_is_told_with_the_path_and_leaves_nothing(
    guard: PathGuard, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    before = tree(root)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="'a/x': No space left on device"):
        write(guard, "a/x")
    assert before == tree(root)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_file_stays_open(guard: PathGuard, root: Path) -> None:
    before = open_files()
    for path in (*ESCAPES, *PROTECTED, "a/x", "in/x", "a/x/y", "none/none"):
        for use in (read, write, append, names, PathGuard.status):
            with suppress(OSError):
                use(guard, path.format(root=root, outside=root))
    assert before == open_files()


def test_a_system_without_safe_lookups_refuses_everything(guard: PathGuard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set[object]())
    with pytest.raises(PermissionError, match="cannot be guarded on this system"):
        read(guard, "a/x")


# ---------------------------------------------------------------- in another process


def test_a_guard_reads_the_same_in_another_process_and_writes_nothing(root: Path, outside: Path) -> None:
    hidden = root / "a" / "b"
    guard = PathGuard.for_reading(PathGuard((root,), hidden=(hidden,), shown=(outside,)).plain)
    assert read(guard, "a/x") == "inside"
    assert read(guard, str(outside / "x")) == SECRET
    for path in ("a/b/x", "in/x", "../root/a/b/x"):
        with pytest.raises(PermissionError):
            read(guard, path)
    with pytest.raises(PermissionError):
        write(guard, "a/x")


def test_a_link_in_the_place_of_a_root_is_not_followed_in_another_process_either(root: Path, outside: Path) -> None:
    plain = PathGuard((root,)).plain
    root.rename(root.with_name("moved"))
    root.symlink_to(outside)
    with pytest.raises(OSError, match="x"):
        read(PathGuard.for_reading(plain), "x")
