"""Trust: a project's directory is inert until the user allows it, and again after any change."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.desk import Desk
from ot.cli.terminal.trust_screen import Known, lines_of, screen_of
from ot.config.inventory import take_inventory
from ot.config.models import Config
from ot.config.snapshot import MAX_FILE_BYTES, MAX_FILES, take_snapshot
from ot.config.trust import Trust, Verdict
from ot.errors import ConfigError, TrustError


def screen(desk: Desk) -> list[str]:
    """Return what ``onetool trust`` shows of the project to a user who has nothing else."""
    return lines_of(screen_of(take_inventory(desk.project), Known(Config(), {})))


PACK = '"""Demo."""\n\npack = "demo"\n\n\ndef hi() -> str:\n    """Say hi."""\n    return "hi"\n'


@pytest.fixture
def trusted(desk: Desk) -> Desk:
    desk.write_project("aliases: {a: x.y}\n")
    desk.write_project(PACK, "tools/demo/demo_tools.py")
    desk.trust_project()
    return desk


# ---------------------------------------------------------------- the life of a trusted project


def test_a_project_is_inert_until_it_is_trusted(desk: Desk) -> None:
    desk.write_project("aliases: {a: x.y}\n")
    loaded = desk.load()
    assert (loaded.project_state, loaded.config.aliases, loaded.files) == ("untrusted", {}, ())
    assert loaded.warnings == (f"{desk.project} is not trusted and is not used: look at it, then run 'onetool trust'",)
    assert loaded.project is None


def test_an_untrusted_project_is_not_even_parsed_or_written_to(desk: Desk) -> None:
    desk.write_project("a: [\n")
    os.mkfifo(desk.project / "pipe")
    loaded = desk.load()
    assert (loaded.project_state, loaded.state_dir) == ("untrusted", desk.user)


def test_a_trusted_project_is_used(trusted: Desk) -> None:
    loaded = trusted.load()
    assert (loaded.project_state, loaded.config.aliases, loaded.warnings) == ("trusted", {"a": "x.y"}, ())
    assert loaded.project is not None
    assert loaded.project.contents["tools/demo/demo_tools.py"] == PACK.encode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.write_project("aliases: {a: z.z}\n"), "onetool.yaml was changed"),
        (lambda d: d.write_project(PACK + "#", "tools/demo/demo_tools.py"), "demo_tools.py was changed"),
        (lambda d: d.write_project(PACK, "tools/more/more_tools.py"), "tools/more/more_tools.py was added"),
        (lambda d: d.write_project("x", "tools/demo/data.bin"), "tools/demo/data.bin was added"),
        (lambda d: d.write_project(b"\0", "tools/demo/__pycache__/demo_tools.pyc"), "demo_tools.pyc was added"),
        (lambda d: d.write_project("x", "tools/tmp/x.py"), "tools/tmp/x.py was added"),
        (lambda d: (d.project / "onetool.yaml").unlink(), "onetool.yaml was removed"),
        (lambda d: (d.project / "x.yaml").symlink_to("onetool.yaml"), "x.yaml is a symbolic link"),
        (lambda d: (d.project / "tmp").symlink_to("/"), "tmp is a symbolic link"),
        (lambda d: (d.project / "onetool.yaml").chmod(0o666), "onetool.yaml can be written by every user"),
        (lambda d: (d.project / "tools").chmod(0o777), "tools can be written by every user"),
        (lambda d: d.project.chmod(0o777), ". can be written by every user"),
        (lambda d: os.mkfifo(d.project / "pipe"), "pipe is neither a file nor a directory"),
    ],
)
def test_any_change_makes_it_inert_again_and_is_named(change: object, words: str, trusted: Desk) -> None:
    assert callable(change)
    change(trusted)
    loaded = trusted.load()
    assert (loaded.project_state, loaded.config.aliases, loaded.project) == ("changed", {}, None)
    (warning,) = loaded.warnings
    assert "has changed since it was trusted" in warning
    assert words in warning
    # The user knows the directory: what is stored there stays where it was.
    assert loaded.results_dir == trusted.project / "tmp"
    assert loaded.state_dir.parent == trusted.user / "projects"


def test_a_change_taken_back_is_trusted_again(trusted: Desk) -> None:
    trusted.write_project("aliases: {a: z.z}\n")
    assert trusted.load().project_state == "changed"
    trusted.write_project("aliases: {a: x.y}\n")
    assert trusted.load().project_state == "trusted"


def test_what_the_server_writes_may_change(trusted: Desk) -> None:
    for name in ("tmp/a.txt", "logs/a.log", "stats/s.db", "sessions/x"):
        trusted.write_project("x", name)
    assert trusted.load().project_state == "trusted"


def test_a_secrets_file_that_came_later_ends_trust_until_it_is_trusted_too(trusted: Desk) -> None:
    trusted.write_project("TOKEN: abcdef\n", "secrets.yaml")
    loaded = trusted.load()
    assert (loaded.project_state, loaded.secrets.project) == ("changed", {})
    assert "secrets.yaml was added" in loaded.warnings[0]
    trusted.trust_project()
    assert trusted.load().secrets.project == {"TOKEN": "abcdef"}
    trusted.write_project("TOKEN: ghijkl\n", "secrets.yaml")
    assert "secrets.yaml was changed" in trusted.load().warnings[0]


def test_a_secrets_file_that_is_included_is_a_setting_as_any_other(trusted: Desk) -> None:
    trusted.write_project("include: [secrets.yaml]\n")
    trusted.write_project("aliases: {a: evil.tool}\n", "secrets.yaml")
    assert take_inventory(trusted.project).settings["aliases.a"] == "evil.tool"
    assert trusted.load().project_state == "changed"


@pytest.mark.parametrize("name", ["tmp/d", "logs/a/b", "stats/stats.db", "sessions/x"])
def test_a_link_in_a_folder_that_is_not_hashed_ends_trust_and_refuses_it(trusted: Desk, name: str) -> None:
    (trusted.project / name).parent.mkdir(parents=True)
    (trusted.project / name).symlink_to("/")
    (warning,) = trusted.load().warnings
    assert f"{name} is a symbolic link" in warning
    with pytest.raises(TrustError, match=f"{name} is a symbolic link"):
        trusted.trust_project()


def test_more_than_a_few_changes_are_cut(trusted: Desk) -> None:
    for number in range(9):
        trusted.write_project("x", f"new{number}.txt")
    (warning,) = trusted.load().warnings
    assert (warning.count("was added"), "and more" in warning) == (5, True)


def test_an_untrusted_again_project_is_inert(trusted: Desk) -> None:
    assert trusted.trust.untrust(trusted.project) is True
    assert trusted.trust.untrust(trusted.project) is False
    assert trusted.load().project_state == "untrusted"


def test_what_is_trusted_is_listed_with_its_time(desk: Desk) -> None:
    desk.write_project("version: 1\n")
    trust = Trust(desk.user, clock=lambda: 1_800_000_000.0)
    trust.trust(take_inventory(desk.project))
    ((directory, record),) = trust.list().items()
    assert (directory, record.time) == (desk.project.resolve(), "2027-01-15T08:00:00+00:00")
    assert list(record.files) == ["onetool.yaml"]


def test_the_same_directory_by_another_way_is_the_same(trusted: Desk, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(trusted.cwd)
    assert Desk(tmp_path / "way", trusted.user).load().project_state == "trusted"


def test_a_copy_of_a_trusted_project_is_not_trusted(trusted: Desk, tmp_path: Path) -> None:
    copy = Desk(tmp_path / "copy", trusted.user)
    copy.write_project("aliases: {a: x.y}\n")
    copy.write_project(PACK, "tools/demo/demo_tools.py")
    assert copy.load().project_state == "untrusted"


# ---------------------------------------------------------------- between the check and the use


def test_what_is_loaded_are_the_bytes_that_were_checked(trusted: Desk) -> None:
    class ChangedAfterTheCheck(Trust):
        def state(self, project_dir: Path) -> Verdict:
            verdict = super().state(project_dir)
            trusted.write_project("aliases: {a: evil.tool}\n")
            trusted.write_project("evil()", "tools/demo/demo_tools.py")
            return verdict

    loaded = trusted.load(ChangedAfterTheCheck(trusted.user))
    assert (loaded.project_state, loaded.config.aliases) == ("trusted", {"a": "x.y"})
    assert loaded.project is not None
    assert loaded.project.contents["tools/demo/demo_tools.py"] == PACK.encode()


def test_a_secrets_file_exchanged_after_the_check_is_not_used(trusted: Desk) -> None:
    class LinkedAfterTheCheck(Trust):
        def state(self, project_dir: Path) -> Verdict:
            verdict = super().state(project_dir)
            (project_dir / "secrets.yaml").unlink()
            (project_dir / "secrets.yaml").symlink_to(trusted.user / "secrets.yaml")
            return verdict

    trusted.write_project("TOKEN: projects-token\n", "secrets.yaml")
    trusted.trust_project()
    trusted.write_user("TOKEN: users-token\n", "secrets.yaml")
    loaded = trusted.load(LinkedAfterTheCheck(trusted.user))
    assert (loaded.project_state, loaded.secrets.project) == ("trusted", {"TOKEN": "projects-token"})


def test_what_is_trusted_is_what_was_shown(desk: Desk) -> None:
    desk.write_project("aliases: {a: x.y}\n")
    shown = take_inventory(desk.project)
    desk.write_project("aliases: {a: evil.tool}\n")
    desk.trust.trust(shown)
    assert desk.load().project_state == "changed"


def test_for_one_run_a_project_can_be_used_without_a_record(desk: Desk) -> None:
    desk.write_project("aliases: {a: x.y}\n")
    assert desk.load(trust_project=True).config.aliases == {"a": "x.y"}
    assert desk.load().project_state == "untrusted"


def test_for_one_run_a_link_is_refused_all_the_same(desk: Desk) -> None:
    desk.write_project("version: 1\n")
    (desk.project / "tools").symlink_to("/usr")
    with pytest.raises(TrustError, match="tools is a symbolic link"):
        desk.load(trust_project=True)


# ---------------------------------------------------------------- what cannot be trusted


def make_socket(desk: Desk) -> None:
    server = socket.socket(socket.AF_UNIX)
    # A socket's whole path must be short: it is bound from inside the directory.
    old = Path.cwd()
    os.chdir(desk.project)
    try:
        server.bind("sock")
    finally:
        os.chdir(old)
        server.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: (d.project / "out").symlink_to("/etc/passwd"), "out is a symbolic link"),
        (lambda d: (d.project / "in").symlink_to("onetool.yaml"), "in is a symbolic link"),
        (lambda d: (d.project / "gone").symlink_to("nowhere"), "gone is a symbolic link"),
        (lambda d: (d.project / "tools").symlink_to("/usr/lib"), "tools is a symbolic link"),
        (make_socket, "sock is neither"),
        (lambda d: d.write_project(b"x" * (MAX_FILE_BYTES + 1), "big.bin"), "big.bin is larger"),
        (lambda d: Path(os.fsdecode(os.fsencode(d.project) + b"/\xff.py")).write_text(""), "a name that is not text"),
        (lambda d: d.write_project("verion: 1\n", "onetool.yaml"), "did you mean 'version'?"),
        (lambda d: d.write_project(b"#" * (1 << 20) + b"\n", "onetool.yaml"), "larger than"),
    ],
)
def test_what_cannot_be_checked_or_used_cannot_be_trusted(make: object, words: str, desk: Desk) -> None:
    desk.write_project("version: 1\n")
    assert callable(make)
    make(desk)
    with pytest.raises(TrustError) as caught:
        desk.trust_project()
    assert words in str(caught.value)
    assert desk.load().project_state == "untrusted"


def test_a_directory_with_too_many_files_cannot_be_trusted(desk: Desk) -> None:
    many = desk.project / "many"
    many.mkdir(parents=True)
    for number in range(MAX_FILES + 1):
        (many / str(number)).touch()
    assert "more than 5,000 files" in take_snapshot(desk.project).problems[0]


def test_a_directory_with_too_much_in_it_cannot_be_trusted(desk: Desk) -> None:
    for number in range(5):
        desk.write_project(b"x" * MAX_FILE_BYTES, f"{number}.bin")
    assert take_snapshot(desk.project).problems == ("it holds more than 5,000 files or 67,108,864 bytes",)


def test_no_more_than_twenty_problems_are_gathered(desk: Desk) -> None:
    desk.project.mkdir()
    for number in range(40):
        (desk.project / f"link{number}").symlink_to("/")
    assert len(take_snapshot(desk.project).problems) == 20


def test_a_name_cannot_steer_the_terminal(desk: Desk) -> None:
    desk.write_project("x", "tools/\x1b[2Jevil\u202e.py")
    text = "\n".join(screen(desk))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"tools/\x1b[2Jevil\u202e.py" in text


# ---------------------------------------------------------------- the inventory


def test_the_inventory_names_all_that_would_run(desk: Desk) -> None:
    desk.write_project(
        "include: [more.yaml]\naliases: {a: x.y}\nlimits: {calls: 5}\n"
        "snippets: {hello: {description: Greets, body: 'demo.hi()'}}\n"
    )
    desk.write_project("policy: {deny: [vault.*]}\n", "more.yaml")
    desk.write_project(PACK, "tools/demo/demo_tools.py")
    desk.write_project("x = 1\n", "tools/demo/helper.py")
    found = take_inventory(desk.project)
    assert found.packs == {"demo": "tools/demo/demo_tools.py"}
    assert found.code == ("tools/demo/helper.py",)
    assert found.snippets == {"hello": {"description": "Greets", "body": "demo.hi()"}}
    assert found.settings == {
        "include.0": "more.yaml",
        "aliases.a": "x.y",
        "limits.calls": "5",
        "policy.deny.0": "vault.*",
    }
    assert sorted(found.hashes) == ["more.yaml", "onetool.yaml", "tools/demo/demo_tools.py", "tools/demo/helper.py"]
    assert found.problems == ()


def test_the_inventory_reads_as_lines(desk: Desk) -> None:
    desk.write_project("aliases: {a: x.y}\n")
    desk.write_project(PACK, "tools/demo/demo_tools.py")
    lines = screen(desk)
    assert "packs (1)" in lines
    assert "  demo  tools/demo/demo_tools.py" in lines
    assert "servers (0)" in lines
    assert "  aliases.a  x.y" in lines
    assert any(line.startswith("  onetool.yaml  sha256 ") for line in lines)
    assert not any(line.startswith("cannot be trusted") for line in lines)


def test_the_inventory_says_what_stands_in_the_way(desk: Desk) -> None:
    desk.write_project("version: 1\n")
    (desk.project / "x").symlink_to("/")
    assert screen(desk)[-2:] == ["cannot be trusted (1)", "  x is a symbolic link"]


# ---------------------------------------------------------------- the record


def test_the_record_is_the_users_alone(trusted: Desk) -> None:
    assert stat.S_IMODE((trusted.user / "trust.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(trusted.user.stat().st_mode) == 0o700
    assert [file.name for file in trusted.user.iterdir() if "trust" in file.name and "lock" not in file.name] == [
        "trust.json"
    ]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"version": 2, "projects": {}}', b'{"version": 1, "projects": {"x": 1}}'],
)
def test_a_damaged_record_trusts_nothing_and_says_so(damage: bytes, trusted: Desk) -> None:
    (trusted.user / "trust.json").write_bytes(damage)
    loaded = trusted.load()
    assert loaded.project_state == "untrusted"
    assert "is damaged, so no project is trusted" in loaded.warnings[0]
    trusted.trust_project()
    assert trusted.load().project_state == "trusted"


def test_a_record_that_others_can_write_trusts_nothing(trusted: Desk) -> None:
    (trusted.user / "trust.json").chmod(0o606)
    loaded = trusted.load()
    assert loaded.project_state == "untrusted"
    assert "can be written by other users" in loaded.warnings[0]


def test_a_record_that_cannot_be_read_trusts_nothing(trusted: Desk) -> None:
    (trusted.user / "trust.json").unlink()
    (trusted.user / "trust.json").mkdir()
    loaded = trusted.load()
    assert loaded.project_state == "untrusted"
    assert "cannot be read" in loaded.warnings[0]


def test_a_write_that_fails_leaves_the_old_record_and_no_litter(trusted: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    before = sorted(file.name for file in trusted.user.iterdir())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        trusted.trust.untrust(trusted.project)
    assert sorted(file.name for file in trusted.user.iterdir()) == before
    assert trusted.load().project_state == "trusted"


def test_processes_that_trust_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    user, count = tmp_path / "user", 10
    program = (
        "import sys; from pathlib import Path\n"
        "from ot.config.inventory import take_inventory; from ot.config.trust import Trust\n"
        "for directory in sys.argv[2:]: Trust(Path(sys.argv[1])).trust(take_inventory(Path(directory)))\n"
    )
    directories = [tmp_path / f"p{number}" / ".onetool" for number in range(2 * count)]
    for directory in directories:
        directory.mkdir(parents=True)
        (directory / "onetool.yaml").write_text("version: 1\n")
    halves = [directories[:count], directories[count:]]
    running = [subprocess.Popen([sys.executable, "-c", program, str(user), *map(str, half)]) for half in halves]
    assert [process.wait(60) for process in running] == [0, 0]
    assert len(json.loads((user / "trust.json").read_text())["projects"]) == 2 * count


def test_a_broken_project_that_is_trusted_raises_with_its_line(desk: Desk) -> None:
    file = desk.write_project("version: 1\nlimits: {calls: 99999}\n")
    desk.trust_project()
    with pytest.raises(ConfigError) as caught:
        desk.load()
    assert (caught.value.file, caught.value.line) == (file, 2)
