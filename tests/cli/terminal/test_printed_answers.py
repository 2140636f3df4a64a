"""Replies with media, on a terminal and in files."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from ot.cli.exit_codes import FAILURE, OK
from ot.cli.sharing.quick_command import parse_command
from ot.cli.terminal.printed_answers import print_reply
from ot.cli.terminal.saved_media import require_no_detour

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


def test_no_file_is_replaced(tmp_path: Path) -> None:
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
