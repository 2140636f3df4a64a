"""What a model does with OneTool in a client, and what is observed of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pace import wait_while
from real_clients.model_server import Run
from real_clients.tapped_client import TappedClient
from shared_bed import SharedBed, kill
from terminal import ONETOOL, at_terminal

type Messages = list[dict[str, Any]]

LAB = '''
import base64
import os
import time

import ot_sdk

__ot_destructive__ = ["delete"]
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def delete(item: int, log: str) -> int:
    """Delete something, and write that down."""
    with open(log, "a") as file:
        file.write(f"{item}\\n")
    return item


def count(to: int, until: str = "") -> int:
    """Count, and wait for a file."""
    ot_sdk.progress(to, to, "counted")
    for _ in range(3000):
        if not until or os.path.exists(until):
            break
        time.sleep(0.01)
    return to


def dot() -> dict:
    """Draw a dot."""
    return ot_sdk.image(base64.b64decode(DOT))
'''
"""A pack of the user's own with a tool that asks first, one that tells its progress, and one that shows an image."""
LARGE = "[f'line {n}' for n in range(20_000)]"
READS = "ot.result(handle='{handle}', offset=500, limit=2)"
DRAWS = "lab.dot()"


def install_lab(home: Path) -> None:
    """Give a user the pack."""
    place = home / ".onetool" / "tools" / "lab"
    place.mkdir(parents=True)
    (place / "lab_tools.py").write_text(LAB)


def waits(file: str) -> str:
    """Return a program that makes *file*, and then lasts longer than anybody waits."""
    return f'import time\nopen("{file}", "w").write("1")\ntime.sleep(600)'


def deletes(item: int, log: Path) -> str:
    """Return a program that calls a tool which asks first."""
    return f'lab.delete(item={item}, log="{log}")'


def asks(log: Path) -> list[Run]:
    """Return two calls that ask first: one is to be allowed, the other is to be denied."""
    return [Run(deletes(1, log)), Run(deletes(2, log))]


def script(log: Path) -> list[Run]:
    """Return what the model does without a person."""
    return [
        Run("1 + 1"),
        Run("lab.count(to=2)"),
        *asks(log),
        Run(LARGE),
        Run(READS),
        Run(DRAWS),
        Run(waits("crash.txt")),
        Run("2 + 2"),
        Run(waits("cancel.txt")),
    ]


def observe_task(client: TappedClient) -> dict[str, Any]:
    """Play the script without a person, kill the shared server once, press Ctrl-C at the end; return what was seen."""
    house, shown = client.house, client.model.shown
    for name in ("crash.txt", "cancel.txt", "deleted.txt"):
        (house.cwd / name).unlink(missing_ok=True)
    with client.given_task() as process:
        answer_in_terminal(client, process, first=2)
        client.wait(process, (house.cwd / "crash.txt").exists, "crash.txt")
        house.kill_daemon()
        client.wait(process, (house.cwd / "cancel.txt").exists, "cancel.txt")
        client.press_ctrl_c(process)
    # The run ends with its client, however that tells of it.
    wait_while(lambda: [one for server in house.servers() for one in server["connections"] if one["runs"]])
    simple, counted, allowed, denied, stored, read, dot, crashed, after = (one.text for one in shown)
    check_answers(house, allowed, denied)
    assert _last_line(simple) == "2", simple
    assert _last_line(counted) == "2", counted
    assert '"total_lines":20000' in stored.replace("\\", ""), stored
    assert "line 499" in read, read
    assert '"type":"image"' in dot.replace("\\", ""), dot
    assert "its effect is not known" in crashed, crashed
    assert _last_line(after) == "4", after
    return {
        "version": client.program.version,
        **observe_greeting(client.said),
        "tool": client.model.tool,
        "progress": all("progressToken" in call["params"].get("_meta", {}) for call in calls(client.said)),
        "image": list(shown[6].images),
        "nobody there": answers(client.said),
    }


def observe_answers(client: TappedClient) -> None:
    """Allow a call of the model and deny the next, in a terminal beside the client."""
    house = client.house
    (house.cwd / "deleted.txt").unlink(missing_ok=True)
    with client.given_task() as process:
        answer_in_terminal(client, process, first=0)
        client.wait(process, lambda: len(client.model.shown) == 2, "second result")
    allowed, denied = (one.text for one in client.model.shown)
    check_answers(house, allowed, denied)


def answer_in_terminal(client: TappedClient, process: subprocess.Popen[bytes], first: int) -> None:
    """Say yes and then no to the questions of the model's calls from number *first*, as a person does in a terminal."""
    for number, key in enumerate("yn", first):
        client.wait(process, partial(_asks_in_call, client, number), "question that waits")
        answer_question(client.house, key)


def _asks_in_call(client: TappedClient, number: int) -> bool:
    # The question of the call before is gone for certain when the model has been shown what came of it.
    return len(client.model.shown) == number and any(client.house.directory.glob("*.ask"))


def answer_question(house: SharedBed, key: str) -> None:
    """Answer the question that waits, by pressing *key* at a terminal."""
    listed = house.typed("answer", "--json")
    # Other users of the tests have this user's number, too.
    asked = [one for one in json.loads(listed.stdout)["questions"] if one["directory"] == str(house.cwd)]
    assert len(asked) == 1, listed
    with at_terminal([ONETOOL, "answer", asked[0]["code"]], house.environment(), house.cwd) as terminal:
        terminal.read_until("[n]o: ")
        terminal.type(key)
        code, said = terminal.end()
    assert code == 0, said
    assert "delete, marked as destructive: a program wants to call it" in said, said


def check_answers(house: SharedBed, allowed: str, denied: str) -> None:
    """The call that a person allowed was made, the other was not, and the model was told so."""
    assert _last_line(allowed) == "1", allowed
    assert "lab.delete was not called" in denied, denied
    assert (house.cwd / "deleted.txt").read_text() == "1\n"


def upgraded(house: SharedBed) -> list[Run]:
    """Return what the model does while another version is installed."""
    during = f'open("upgrade.txt", "w").write("1")\nlab.count(to=2, until="{house.cwd}/go.txt")'
    return [Run("1 + 1"), Run(during), Run(waits("crash.txt")), Run("2 + 2")]


def observe_upgrade(client: TappedClient, upgrade: Callable[[], None]) -> None:
    """Install another version during a call, and end the old server during the next one."""
    house, shown = client.house, client.model.shown
    with client.given_task() as process:
        client.wait(process, (house.cwd / "upgrade.txt").exists, "upgrade.txt")
        old = house.daemon()
        upgrade()
        wait_while(lambda: house.daemons() and "the old server still takes clients")
        (house.cwd / "go.txt").touch()
        client.wait(process, (house.cwd / "crash.txt").exists, "crash.txt")
        kill(old)
        client.wait(process, lambda: len(shown) == 4, "fourth result")
        assert house.daemon() != old
    before, during, ended, after = (one.text for one in shown)
    assert [_last_line(text) for text in (before, during, after)] == ["2", "2", "4"]
    assert "its effect is not known" in ended, ended


def _last_line(text: str) -> str:
    """Return the value that a client shows, without what it adds before and after it."""
    lines = [line for line in text.splitlines() if not line.startswith("</")]
    return lines[-1] if lines else ""


def dialogue(log: Path) -> list[Run]:
    """Return what the model does while a person watches."""
    return [*asks(log), Run(waits("cancel.txt"))]


def observe_dialogue(client: TappedClient) -> dict[str, Any]:
    """Allow a call in the client's own dialogue, deny the next, press Esc during a run; return what was seen."""
    house, shown = client.house, client.model.shown
    for name in ("cancel.txt", "deleted.txt"):
        (house.cwd / name).unlink(missing_ok=True)
    with client.at_terminal() as terminal:
        for number, keys in enumerate((client.program.allow, client.program.deny)):
            terminal.read_until("lab.delete, marked as destructive: a program wants to call it")
            for words, key in keys:
                terminal.read_until(words)
                terminal.press(key)
            # A dialogue that has only just appeared may ignore keys, so that nothing is allowed by accident.
            terminal.look_until(partial(has_answered, client, number + 1), again=keys[-1][1])
        terminal.look_until((house.cwd / "cancel.txt").exists)
        terminal.press("\x1b")
        terminal.look_until(partial(has_cancelled, client))
    allowed, denied = (one.text for one in shown[:2])
    check_answers(house, allowed, denied)
    return {"version": client.program.version, **observe_greeting(client.said), "dialogue": answers(client.said)}


def observe_greeting(said: Messages) -> dict[str, Any]:
    """Return the revision of the protocol that a client ended up with, and what it says that it can do."""
    first = next(message for message in said if "capabilities" in json.dumps(message).lower())
    params = first["params"]
    meta = {key.rpartition("/")[2]: value for key, value in params.get("_meta", {}).items()}
    can = params.get("capabilities") or meta.get("clientCapabilities") or {}
    asks = [f"elicitation {mode}" for mode in can.get("elicitation", {})] or ["elicitation"] * ("elicitation" in can)
    others = [name for name in can if name not in ("elicitation", "experimental", "extensions")]
    return {
        "protocol": params.get("protocolVersion") or meta["protocolVersion"],
        "declares": sorted([*asks, *others, *can.get("extensions", {})]),
    }


def answers(said: Messages) -> list[str]:
    """Return how a client answered questions, in both eras of the protocol."""
    given = [message.get("result", {}) for message in said]
    given += [one for message in said for one in message.get("params", {}).get("inputResponses", {}).values()]
    return [" ".join([one["action"], *(one.get("content") or {}).values()]) for one in given if "action" in one]


def has_answered(client: TappedClient, times: int) -> bool:
    """Return whether the client has answered so many questions."""
    return len(answers(client.said)) >= times


def calls(said: Messages) -> list[dict[str, Any]]:
    """Return the calls that a client has made."""
    return [message for message in said if message.get("method") == "tools/call"]


def has_cancelled(client: TappedClient) -> bool:
    """Return whether the client has told OneTool that its user cancelled the last call."""
    said = client.said
    return calls(said)[-1]["id"] in [message["params"]["requestId"] for message in said if _is_cancel(message)]


def _is_cancel(message: dict[str, Any]) -> bool:
    return message.get("method") == "notifications/cancelled"
