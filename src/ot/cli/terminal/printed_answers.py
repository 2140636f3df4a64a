"""Prints answers that are plain data, whichever process found them; the quickest commands import nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ot.cli.exit_codes import ERRORS, FAILURE, OK
from ot.cli.terminal import echo, echo_either, echo_value


def print_reply(reply: Mapping[str, Any], *, as_json: bool, save: str = "") -> int:
    """Print what a run came to, and return the code that the command ends with; *save* is a directory for its media."""
    failed = reply["is_error"]
    problem = ""
    if save and reply.get("blocks"):
        from ot.cli.terminal.saved_media import save_media

        try:
            reply = {**reply, "blocks": save_media(reply["blocks"], save)}
        except OSError as error:
            problem = f"nothing could be saved in {save}: {error.strerror or error}"
    if as_json:
        echo(json.dumps({key: value for key, value in reply.items() if key != "cause"}))
    else:
        for text in reply["content"]:
            if failed:
                echo(text, nl=not text.endswith("\n"), err=True)
            else:
                echo_value(text)
        for block in reply.get("blocks", ()):
            echo(_block_line(block), err=True)
        if not save and any(block.get("type") != "resource_link" for block in reply.get("blocks", ())):
            echo("(onetool run --save DIR writes them to files)", err=True)
    if problem:
        echo(f"onetool: {problem}", err=True)
        return FAILURE
    return ERRORS.get(reply["cause"], FAILURE) if failed else OK


def print_answer(answer: Mapping[str, Any], *, as_json: bool) -> int:
    """Print *answer*, and return the code that the command ends with."""
    for warning in answer.get("warnings", ()):
        echo(warning, err=True)
    if "value" in answer:
        echo_either(as_json, answer["value"], answer["lines"])
    for note in () if as_json else answer.get("notes", ()):
        echo(note, err=True)
    if answer["problem"]:
        echo(f"onetool: {answer['problem']}", err=True)
    return answer["code"]


def _block_line(block: Mapping[str, Any]) -> str:
    """Return a line that stands for content which a terminal cannot show, or the file that it is in."""
    if "file" in block:
        return f"saved {block['file']}"
    inner: Mapping[str, Any] = block.get("resource") or block
    parts = [block.get("type"), inner.get("mimeType"), inner.get("uri")]
    data = str(inner.get("data") or inner.get("blob") or "")
    size = f"{len(data) * 3 // 4 - data[-2:].count('='):,} bytes" if data else ""
    return f"[{', '.join(str(part) for part in (*parts, size) if part)}]"
