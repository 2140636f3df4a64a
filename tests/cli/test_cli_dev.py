"""onetool dev: a pack is called as the server would call it, and again when its file changes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest
import typer

from cli.command import OneTool, interruptible
from ot.cli.dev import DevCall, parse_call
from ot.errors import ToolFailed

WAIT_SECONDS = 30

PACK = '''
import ot_sdk

def double(*, number: int = 1) -> int:
    """Return twice the number."""
    print("doubling", number)
    ot_sdk.progress(1, 2, "half way")
    return number * 2

def fail() -> None:
    raise LookupError("no such thing")

def names() -> list:
    return [tool for tool in ot_sdk.call_tool("ot.tools", pattern="odd") ]
'''


@pytest.fixture
def file(onetool: OneTool) -> Path:
    """A pack of the project, which nobody has trusted."""
    return write(onetool.project / "tools" / "odd" / "odd_tools.py", PACK)


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Who watches the directory sees neither a file that is half written nor another beside it.
    with tempfile.NamedTemporaryFile("w", delete=False) as whole:
        whole.write(text)
    return Path(whole.name).replace(file)


# ---------------------------------------------------------------- a call


def test_the_value_goes_to_standard_output_and_all_else_beside_it(onetool: OneTool, file: Path) -> None:
    ended = onetool("dev", str(file), "double(number=21)", "--once")
    assert (ended.code, ended.out) == (0, "42\n")
    shown = [line for line in ended.err.splitlines() if not line.startswith("warning: ")]
    assert shown[:2] == ["doubling 21", "[1/2] half way"]
    assert re.fullmatch(r"ok, \d+\.\d\d s", shown[-1])


def test_a_program_is_told_the_value_or_the_error_and_the_tools_as_json(onetool: OneTool, file: Path) -> None:
    told = json.loads(onetool("dev", str(file), "double(number=21)", "--once", "--json").out)
    assert (told["ok"], told["value"], told["seconds"] >= 0) == (True, 42, True)
    ended = onetool("dev", str(file), "fail()", "--once", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["ok"], "LookupError: no such thing" in told["error"]) == (1, False, True)
    told = json.loads(onetool("dev", str(file), "--once", "--json").out)
    assert ([tool["name"] for tool in told["tools"]], told["secrets"]) == (["odd.double", "odd.fail", "odd.names"], {})
    write(file, "def broken(:")
    assert json.loads(onetool("dev", str(file), "--once", "--json").out)["ok"] is False


def test_a_call_may_name_its_pack_and_abbreviate_as_a_program_may(onetool: OneTool, file: Path) -> None:
    assert onetool("dev", str(file), "odd.double(num=4)", "--once").out == "8\n"


def test_a_tool_may_call_others_meanwhile(onetool: OneTool, file: Path) -> None:
    ended = onetool("dev", str(file), "names()", "--once")
    assert ended.out.startswith('[{"name":"odd.double"')


def test_who_types_a_call_that_would_ask_has_agreed_to_it_but_not_to_what_it_calls(onetool: OneTool) -> None:
    source = "import ot_sdk\n__ot_destructive__ = ['wipe']\ndef wipe(): return 'wiped'\n"
    source += "def other(): return ot_sdk.call_tool('file.write', path='a', content='b')\n"
    file = write(onetool.project / "tools" / "sharp" / "sharp_tools.py", source)
    onetool.user.mkdir(exist_ok=True)
    (onetool.user / "onetool.yaml").write_text("policy: {ask: [file.write]}\n")
    assert onetool("dev", str(file), "wipe()", "--once").out == "wiped\n"
    ended = onetool("dev", str(file), "other()", "--once")
    assert ended.code == 1
    assert "file.write was not called: it asks first, and the user could not be asked" in ended.err
    assert not (onetool.cwd / "a").exists()


def test_a_failure_is_told_and_ends_with_one(onetool: OneTool, file: Path) -> None:
    ended = onetool("dev", str(file), "fail()", "--once")
    assert (ended.code, ended.out) == (1, "")
    assert "LookupError: no such thing" in ended.err
    assert f'File "{file}", line 11, in fail' in ended.err
    assert str(onetool.user) not in ended.err
    assert re.search(r"^failed after \d+\.\d\d s$", ended.err, re.MULTILINE)


def test_the_tools_own_frames_are_shown_where_a_backend_noted_them() -> None:
    from ot.cli import dev

    error = ToolFailed("odd.fail", "LookupError", "no such thing")
    assert dev._failure(error) == "LookupError: no such thing"
    error.add_note('Traceback:\n  File "odd_tools.py", line 12\nLookupError: no such thing\n')
    assert dev._failure(error) == 'Traceback:\n  File "odd_tools.py", line 12\nLookupError: no such thing'


def test_wrong_arguments_are_told_with_the_signature(onetool: OneTool, file: Path) -> None:
    ended = onetool("dev", str(file), "double(many=1)", "--once")
    assert ended.code == 1
    assert "odd.double(number: int = 1) -> int" in ended.err
    assert "'missing' is not in pack 'odd'" in onetool("dev", str(file), "missing()", "--once").err


@pytest.mark.parametrize(
    "text",
    [
        "double",
        "1 + 1",
        "other.double()",
        "double(number=1 + x)",
        "double(**{})",
        "double(*[1])",
        "double(",
        "a.b()",
        "",
    ],
)
def test_what_is_not_one_call_is_refused_and_nothing_of_it_evaluated(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write one call"):
        parse_call("odd", text)


def test_a_call_is_read_with_its_arguments() -> None:
    assert parse_call("odd", ' f(1, [2], a={"b": None}, c=-3) ') == DevCall(
        "odd", "f", [1, [2]], {"a": {"b": None}, "c": -3}
    )


# ---------------------------------------------------------------- the pack


def test_without_a_call_the_tools_are_listed(onetool: OneTool, file: Path) -> None:
    write(file, PACK + '\n__ot_requires__ = {"secrets": ["ODD_TOKEN"]}\n')
    ended = onetool("dev", str(file), "--once")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "odd.double(number: int = 1) -> int",
        "    Return twice the number.",
        "odd.fail() -> None",
        "odd.names() -> list",
        "secret ODD_TOKEN: not given",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def f(:\n", "odd_tools.py:1: "),
        ("# /// script\n# dependencies = [\n# ///\ndef f(): ...\n", "is not valid TOML"),
        ("__all__ = ['g']\ndef f(): ...\n", "__all__ names 'g'"),
        ("pack = 'even'\ndef f(): ...\n", "its file says pack = 'even'"),
        ("x = 1\n", "it has no tools"),
    ],
)
def test_what_is_wrong_with_the_file_is_told(onetool: OneTool, file: Path, text: str, problem: str) -> None:
    write(file, text)
    for arguments in ([], ["f()"]):
        ended = onetool("dev", str(file), *arguments, "--once")
        assert (ended.code, ended.out) == (1, "")
        assert "pack 'odd' cannot be used: " in ended.err
        assert problem in ended.err


def test_a_pack_that_cannot_be_imported_is_told(onetool: OneTool, file: Path) -> None:
    write(file, "import no_such_module\ndef f(): ...\n")
    ended = onetool("dev", str(file), "f()", "--once")
    assert ended.code == 1
    assert "No module named 'no_such_module'" in ended.err


@pytest.mark.parametrize("name", ["odd.py", "ot_tools.py", "a-b_tools.py", "_tools.py"])
def test_a_file_that_is_not_called_like_a_pack_is_refused(onetool: OneTool, name: str) -> None:
    write(onetool.cwd / name, PACK)
    ended = onetool("dev", name, "--once")
    assert (ended.code, ended.out) == (2, "")
    assert f"pack '{name}' cannot be loaded: " in ended.err


def test_a_file_that_is_not_there_is_told(onetool: OneTool) -> None:
    ended = onetool("dev", "odd_tools.py", "--once")
    assert ended.code == 1
    assert "odd_tools.py: No such file or directory" in ended.err


def test_a_file_anywhere_is_a_pack_by_itself_and_what_lies_beside_it_is_not_read(onetool: OneTool) -> None:
    write(onetool.cwd / "other.py", "VALUE = 1\n")
    write(onetool.cwd / "odd_tools.py", "def f():\n    import other\n    return other.VALUE\n")
    assert "No module named 'other'" in onetool("dev", "odd_tools.py", "f()", "--once").err


def test_in_a_directory_of_its_own_a_pack_has_its_other_files(onetool: OneTool, file: Path) -> None:
    write(file.with_name("other.py"), "VALUE = 1\n")
    write(file, "def f():\n    import other\n    return other.VALUE\n")
    assert onetool("dev", str(file), "f()", "--once").out == "1\n"
    onetool.cwd = file.parent
    assert onetool("dev", file.name, "f()", "--once").out == "1\n"


def test_only_the_named_pack_is_there_of_those_that_users_wrote(onetool: OneTool, file: Path) -> None:
    write(onetool.user / "tools" / "mine" / "mine_tools.py", "def oddity(): ...\n")
    assert "mine" not in onetool("dev", str(file), "names()", "--once").out


# ---------------------------------------------------------------- settings and secrets

NEEDY = """
from dataclasses import dataclass
import ot_sdk
__ot_requires__ = {"secrets": ["ODD_TOKEN"]}

@dataclass
class Config:
    unit: str = "none"

def unit():
    return ot_sdk.config().unit

def token():
    return len(ot_sdk.secret("ODD_TOKEN").reveal())
"""


def test_a_pack_has_the_users_settings(onetool: OneTool, file: Path) -> None:
    write(file, NEEDY)
    write(onetool.user / "onetool.yaml", "tools: {odd: {unit: yard}}\n")
    assert onetool("dev", str(file), "unit()", "--once").out == "yard\n"


def test_a_projects_settings_are_used_once_it_is_trusted_or_when_asked_for(onetool: OneTool, file: Path) -> None:
    write(file, NEEDY)
    write(onetool.project / "onetool.yaml", "tools: {odd: {unit: mile}}\n")
    ended = onetool("dev", str(file), "unit()", "--once")
    assert ended.out == "none\n"
    assert "is not trusted and is not used" in ended.err
    assert onetool("dev", str(file), "unit()", "--once", "--trust-project").out == "mile\n"
    onetool("trust", "--yes")
    assert onetool("dev", str(file), "unit()", "--once").out == "mile\n"


def test_a_secret_of_the_user_must_be_granted_to_a_pack_that_is_not_the_users_own(onetool: OneTool, file: Path) -> None:
    write(file, NEEDY)
    onetool.monkeypatch.setenv("ODD_TOKEN", "123456789")
    assert "was not given the secret 'ODD_TOKEN'" in onetool("dev", str(file), "token()", "--once").err
    write(onetool.user / "onetool.yaml", "workers: {packs: {odd: {secrets: [ODD_TOKEN]}}}\n")
    assert onetool("dev", str(file), "token()", "--once").out == "9\n"
    assert "secret ODD_TOKEN: given" in onetool("dev", str(file), "--once").out


def test_the_users_own_pack_has_the_secrets_that_it_declares(onetool: OneTool) -> None:
    file = write(onetool.user / "tools" / "odd" / "odd_tools.py", NEEDY)
    onetool.monkeypatch.setenv("ODD_TOKEN", "123456789")
    assert onetool("dev", str(file), "token()", "--once").out == "9\n"


# ---------------------------------------------------------------- changes


class Watching:
    """A running ``onetool dev``, read a line at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def until(self, words: str) -> str:
        """Return what it wrote up to the line that holds *words*."""
        assert self.process.stdout
        seen = b""
        while words.encode() not in seen:
            assert select([self.process.stdout], [], [], WAIT_SECONDS)[0], f"{words!r} did not come: {seen!r}"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"it ended: {seen!r}"
            seen += data
        return seen.decode()


@contextmanager
def watching(onetool: OneTool, *arguments: str) -> Generator[Watching]:
    command = interruptible([str(Path(sys.executable).with_name("onetool")), "dev", *arguments])
    with subprocess.Popen(command, cwd=onetool.cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield Watching(process)
        finally:
            process.kill()


def test_a_change_of_the_file_calls_again_until_interrupted(onetool: OneTool, file: Path) -> None:
    with watching(onetool, str(file), "double(number=2)") as watched:
        assert "\n4\n" in watched.until("ok, ")
        write(file, PACK.replace("number * 2", "number * 5"))
        assert "\n10\n" in watched.until("ok, ")
        write(file, "def double(:\n")
        assert "odd_tools.py:1: " in watched.until("cannot be used")
        write(file, PACK.replace("number * 2", "number * 7"))
        assert "\n14\n" in watched.until("ok, ")
        watched.process.send_signal(signal.SIGINT)
        assert watched.process.wait(WAIT_SECONDS) == 130


def test_a_change_of_the_settings_calls_again_and_a_mistake_in_them_is_told(onetool: OneTool, file: Path) -> None:
    write(file, NEEDY)
    settings = onetool.user / "onetool.yaml"
    with watching(onetool, str(file), "unit()") as watched:
        assert "none\n" in watched.until("ok, ")
        write(settings, "tools: {odd: {unit: yard}}\n")
        assert "yard\n" in watched.until("ok, ")
        write(settings, "toools: {}\n")
        assert f"onetool: {settings}:1: " in watched.until("toools")
        write(settings, "tools: {odd: {unit: mile}}\n")
        assert "mile\n" in watched.until("ok, ")


def test_a_changed_file_shows_its_functions_again(onetool: OneTool, file: Path) -> None:
    with watching(onetool, str(file)) as watched:
        watched.until("odd.names()")
        write(file, "def other(): ...\n")
        assert "odd.names" not in watched.until("odd.other()")
