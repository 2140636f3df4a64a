"""What stands on a terminal: colours, widths, and answers that are printed."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

import ot.cli
from cli.command import OneTool
from onetool_chat.chat_client import ToolCall
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.cli.chat_screen import ChatScreen
from ot.cli.exit_codes import FAILURE, OK
from ot.cli.sharing.quick_command import parse_command
from ot.cli.terminal import Screen, Styled, echo, echo_value
from ot.cli.terminal.printed_answers import print_reply
from ot.cli.terminal.saved_media import require_no_detour

CLEAR, COPY, CSI, TURN = "\x1b[2J", "\x1b]52;c;Zm9v\x07", "\x9b31m", "\u202e"
HOSTILE = f"{CLEAR}{COPY}{CSI}{TURN}"
PRINTERS = {"print", "Console", "echo", "secho", "confirm", "prompt", "style", "write", "writelines"}
LIBRARIES = ("typer", "click", "rich", "sys.stdout", "sys.stderr", "sys.__std", "console", "self._console")


def is_harmless(text: str) -> bool:
    return not set(text) & set("\x1b\x07\x9b\u202e\r")


def test_text_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"a{HOSTILE}\tb\nc")
    echo(HOSTILE, err=True)
    echo(Styled(HOSTILE, fg="red"), "\udc80")
    out, err = capsys.readouterr()
    assert out.startswith("a\\x1b[2J\\x1b]52;c;Zm9v\\x07\\x9b31m\\u202e\tb\nc\n")
    assert "\\udc80" in out
    assert is_harmless(out + err)


def test_a_value_goes_into_a_pipe_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    echo_value(f"red: {CLEAR}")
    echo_value("line\n")
    assert capsys.readouterr().out == f"red: {CLEAR}\nline\n"


def test_tables_and_the_chats_words_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Column

    Screen().table([Column("tool"), Column("n")], [[f"a{HOSTILE}", (f"[red]{HOSTILE}", "cyan")]])
    ChatScreen(str).take_text(f"hi {HOSTILE}")
    ChatScreen(str).fail(HOSTILE)
    ChatScreen(str).note(HOSTILE)
    screen, program, call = (
        ChatScreen(str),
        ToolCall("1", "run", {"command": HOSTILE}),
        ToolCall("2", "a", {"b": HOSTILE}),
    )
    for one in (program, call):
        screen.calling(one)
        screen.note_call(one, ToolAnswer(HOSTILE, True), 0.1)
    shown = capsys.readouterr().out
    assert "[red]\\x1b" in shown
    assert is_harmless(shown)


def prints_of(path: Path) -> list[str]:
    """Return the calls in a file that print, or make what would, with a library's own means."""
    called = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    bare = [call.id for call in called if isinstance(call, ast.Name) and call.id in ("print", "Console")]
    owned = [(ast.unparse(call.value), call.attr) for call in called if isinstance(call, ast.Attribute)]
    return bare + [f"{owner}.{name}" for owner, name in owned if owner.startswith(LIBRARIES) and name in PRINTERS]


def test_only_one_file_of_the_command_line_prints() -> None:
    files = sorted(Path(ot.cli.__path__[0]).rglob("*.py"))
    assert [path.parts[-2:] for path in files if prints_of(path)] == [("terminal", "__init__.py")]


# ---------------------------------------------------------------- commands, with what others wrote


def test_a_projects_keys_and_names_are_shown_and_not_obeyed(onetool: OneTool) -> None:
    (onetool.project / "tools").mkdir(parents=True)
    (onetool.project / "onetool.yaml").write_text('"x\\e[31m": 1\n"\\e]52;c;Zm9v\\a": 2\n')
    for command in (["trust", "--yes"], ["check"], ["doctor"]):
        ended = onetool(*command)
        assert is_harmless(ended.out + ended.err), command
    assert "\\x1b[31m" in onetool("trust", "--yes").err


def test_a_directory_with_a_hostile_name_is_shown_and_not_obeyed(onetool: OneTool) -> None:
    onetool.cwd = onetool.cwd / f"dir{CLEAR}{TURN}"
    onetool.cwd.mkdir()
    for command in (["init"], ["trust", "--list"], ["check"], ["trust", "--yes"], ["doctor"], ["untrust"]):
        ended = onetool(*command)
        assert is_harmless(ended.out + ended.err), command
        assert "dir\\x1b[2J\\u202e" in ended.out + ended.err or command == ["doctor"], command


@pytest.mark.parametrize("command", [["add", "evil"], ["add", "--json", "other"]])
def test_a_servers_last_words_are_shown_and_not_obeyed(onetool: OneTool, tmp_path: Path, command: list[str]) -> None:
    server = tmp_path / "server.py"
    server.write_text(f"import sys\nsys.stderr.write({HOSTILE!r} + 'last words')\nsys.exit(3)\n")
    ended = onetool(*command, sys.executable, str(server))
    assert ended.code == 5
    assert "last words" in ended.out
    assert is_harmless(ended.out + ended.err)
    if "--json" in command:
        assert CLEAR in json.loads(ended.out)["error"]


def test_a_log_shows_levels_and_messages_and_does_not_obey_them(onetool: OneTool) -> None:
    log = onetool.user / "logs" / "onetool.log"
    log.parent.mkdir(parents=True)
    entry = {"ts": 1.0, "level": HOSTILE, "logger": CSI, "message": TURN, HOSTILE: CLEAR}
    log.write_text(json.dumps(entry, ensure_ascii=False) + f"\nno json {HOSTILE}\n")
    text, lines = onetool("logs"), onetool("logs", "--json")
    assert "\\x1b[2J" in text.out
    assert is_harmless(text.out + lines.out)
    assert json.loads(lines.out.splitlines()[0]) == entry


@pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux terminals")
def test_what_a_program_prints_and_returns_is_shown_on_a_terminal_and_not_obeyed(onetool: OneTool) -> None:
    program = "print(chr(27) + '[2J' + chr(0x9b))\nchr(0x202e) + chr(27) + ']52;c;Zm9v' + chr(7)"
    master, slave = pty.openpty()
    command = [str(Path(sys.executable).with_name("onetool")), "run", program]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, cwd=onetool.cwd, start_new_session=True
    ) as run:
        os.close(slave)
        shown = _all_of(master)
        run.wait(60)
    assert is_harmless(shown.replace("\r\n", "\n"))
    assert "\\x1b[2J\\x9b" in shown
    assert "\\u202e\\x1b]52;c;Zm9v\\x07" in shown


def _all_of(fd: int) -> str:
    pieces: list[bytes] = []
    try:
        while piece := os.read(fd, 4096):
            pieces.append(piece)
    except OSError:  # the other side was closed
        pass
    os.close(fd)
    return b"".join(pieces).decode()


def test_a_programs_value_goes_into_a_pipe_as_it_is(onetool: OneTool) -> None:
    assert onetool("run", "chr(27) + '[31m'").out == "\x1b[31m\n"
    failed = onetool("run", "print(chr(27))\nraise ValueError(chr(27) + '[2J')")
    assert "\\x1b[2J" in failed.err
    assert is_harmless(failed.err)


PNG = b"\x89PNG\r\n\x1a\n-and-more"


def coded(data: bytes) -> str:
    return b64encode(data).decode()


def reply(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"content": ["done"], "is_error": False, "meta": {}, "cause": "", "blocks": list(blocks)}


IMAGE = {"type": "image", "mimeType": "image/png", "data": coded(PNG)}
BLOB = {"type": "resource", "resource": {"uri": "x://../../a", "mimeType": "application/pdf", "blob": coded(b"%PDF")}}
TEXT = {"type": "resource", "resource": {"uri": "x://b", "mimeType": "text/plain; charset=utf-8", "text": "wörds"}}
ODD = {"type": "../odd", "mimeType": "../../odd", "data": coded(b"?")}
LINK = {"type": "resource_link", "uri": "x://c", "name": "c"}
BROKEN = {"type": "audio", "mimeType": "audio/wav", "data": "not base64!"}


def test_media_are_written_to_files_of_our_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "new" / "kept"
    assert print_reply(reply(IMAGE, BLOB, TEXT, ODD, LINK, BROKEN), as_json=False, save=str(place)) == OK
    kept = {file.name: file.read_bytes() for file in place.iterdir()}
    assert kept == {
        "image-1.png": PNG,
        "resource-1.pdf": b"%PDF",
        "resource-1.txt": "wörds".encode(),
        "media-1.bin": b"?",
    }
    said = capsys.readouterr()
    names = [f"saved {place}/{name}" for name in ("image-1.png", "resource-1.pdf", "resource-1.txt", "media-1.bin")]
    assert said.err.splitlines() == [*names, "[resource_link, x://c]", "[audio, audio/wav, 8 bytes]"]
    assert said.out == "done\n"


def test_saved_images_replace_no_file(tmp_path: Path) -> None:
    (tmp_path / "image-1.png").write_bytes(b"mine")
    print_reply(reply(IMAGE, IMAGE), as_json=False, save=str(tmp_path))
    assert {file.name: len(file.read_bytes()) for file in tmp_path.iterdir()} == {
        "image-1.png": 4,
        "image-2.png": len(PNG),
        "image-3.png": len(PNG),
    }


def test_json_names_the_files_instead_of_their_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_reply(reply(IMAGE, BLOB), as_json=True, save=str(tmp_path))
    image, blob = json.loads(capsys.readouterr().out)["blocks"]
    assert image == {"type": "image", "mimeType": "image/png", "file": str(tmp_path / "image-1.png")}
    assert "blob" not in blob["resource"] and blob["file"] == str(tmp_path / "resource-1.pdf")


def test_what_cannot_be_saved_is_a_failure_that_still_prints_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert print_reply(reply(IMAGE), as_json=False, save=str(tmp_path / "file")) == FAILURE
    said = capsys.readouterr()
    assert said.out == "done\n"
    assert f"onetool: nothing could be saved in {tmp_path}/file: File exists" in said.err


def test_the_shared_server_is_asked_without_the_directory(tmp_path: Path) -> None:
    asked = parse_command(["run", "1+1", "--save", "kept", "--json"])
    assert asked == {"command": "run", "words": ["1+1"], "flags": [], "as_json": True, "save": "kept"}
    (tmp_path / "file").write_text("")
    assert parse_command(["run", "1+1", "--save", str(tmp_path / "file")]) is None
    assert parse_command(["run", "1+1", "--save"]) is None
    assert parse_command(["list", "--save", "kept"]) is None


@pytest.mark.parametrize("given", ["door/x.html", "{cwd}/door/x.html", "sub/../door/x.html", "{cwd}/report.html"])
def test_a_link_that_a_clone_brought_leads_nothing_out_of_the_working_directory(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, outside = tmp_path / "clone", tmp_path / "outside"
    (clone / "sub").mkdir(parents=True)
    outside.mkdir()
    (clone / "door").symlink_to(outside)
    (clone / "report.html").symlink_to(outside / ".bashrc")
    monkeypatch.chdir(clone)
    with pytest.raises(OSError, match="a link on the way leads to"):
        require_no_detour(Path(given.format(cwd=clone)))
    for chosen in ("plain.html", "../outside/x.html", f"{outside}/x.html", f"{clone}/sub/x.html"):
        require_no_detour(Path(chosen))
