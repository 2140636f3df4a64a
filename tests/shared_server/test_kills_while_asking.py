"""Client, relay, shared server and terminal are killed in any order while questions wait at the terminals."""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress
from itertools import batched
from pathlib import Path
from typing import Any

import pytest

from answering import listed
from mcp_wire import WireServer
from pace import patiently, wait_while
from shared_bed import SharedBed, asked_bed, is_alone, kill, own_command, wait_until_gone
from shared_server.test_kills import is_alive, processes_of
from terminal import ONETOOL, at_terminal

CONFIG = """\
logs: {level: WARNING}
policy: {ask: ["file.append"], questions: terminal, ask_seconds: 3600}
"""
PLAYS = 12
SOAK_ROUNDS = 17
"""With twelve plays each, that is more than two hundred."""
AT_ONCE = 4
"""So many terminals start beside each other: on a busy machine, all would take longer than a test waits for one."""
MOST_PAUSE = 0.02
CLIENT = """
import os, subprocess, sys, threading
relay = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def pass_on(source, target):
    while data := os.read(source, 65536):
        os.write(target, data)
    os.close(target)
threading.Thread(target=pass_on, args=(0, relay.stdin.fileno()), daemon=True).start()
pass_on(relay.stdout.fileno(), 1)
"""
"""Its own end, and that of the test, closes the pipes of its relay."""
WRITTEN, NO, NOT_MADE, UNKNOWN = "written", "the user said no", "That call was not made", "its effect is not known"
OVER = "nobody was left to be told"
ENDS = (WRITTEN, NO, NOT_MADE, UNKNOWN, "a call that nobody allowed was not made")
WAITS = re.compile(r"^The run is not over(?s:.*)ot\.run_state\(id=\"(\w+)\"")


class Play:
    """A client whose run asks, a person at a terminal, and what happens to them in order."""

    def __init__(self, house: SharedBed, number: int, chance: random.Random) -> None:
        """Start the client; what happens is drawn, but for the first, who sees the next server begin."""
        parts: tuple[str, ...] = ("server", "terminal", "client", "relay")[: chance.choice((2, 4))]
        kills: list[str] = chance.sample(parts, chance.randint(0, len(parts))) if number else ["server"]
        answer = chance.choice(("yes", "yes", "no", "")) if number else ""
        others = [answer] if answer else []
        others += ["give up"] if number and chance.random() < 0.2 else []
        for event in others:
            kills.insert(chance.randint(0, len(kills)), event)
        self.events = kills
        self.house = house
        self.file = house.cwd / f"{number}.txt"
        self.file.unlink(missing_ok=True)
        self.typed = ""
        self._start()

    def _start(self) -> None:
        command, house = [sys.executable, "-I", "-S", "-c", CLIENT, *own_command("serve", "--shared")], self.house
        self.wire = WireServer.start(command, cwd=house.cwd, env=house.environment(), handshake=False, warm=False)

    def __repr__(self) -> str:
        return f"{self.file.name}: {self.events}"

    def ask(self) -> None:
        """Let the run begin; on a busy machine the client may have given up on the shared server, and tries again."""
        self.wire.initialize()
        while is_alone(self.wire):
            self.wire.kill()
            self._start()
            self.wire.initialize()
        [self.relay] = map(int, Path(f"/proc/{self.wire.pid}/task/{self.wire.pid}/children").read_text().split())
        self.request = self.wire.send_run(f"file.append(path='{self.file.name}', content='x')\n'written'")

    def open_terminal(self, stack: ExitStack, questions: list[dict[str, Any]]) -> None:
        """Show the question at a terminal of its own."""
        self.code = next(one["code"] for one in questions if f"'{self.file.name}'" in one["question"]["message"])
        self.terminal = stack.enter_context(self._terminal())

    def _terminal(self) -> Any:
        return at_terminal([ONETOOL, "answer", self.code], self.house.environment())

    def split(self) -> tuple[list[str], list[str]]:
        """Return what happens before the server is killed, and after it; all is over before, if it is not."""
        at = self.events.index("server") if "server" in self.events else len(self.events)
        return self.events[:at], self.events[at + 1 :]

    def act(self, event: str) -> None:
        """Let it happen."""
        match event:
            case "client":
                kill(self.wire.pid)
            case "relay":
                kill(self.relay)
            case "terminal":
                self.terminal.process.kill()
                self.terminal.process.wait()
            case "give up":
                with suppress(BrokenPipeError):  # it was killed
                    params = {"requestId": self.request, "reason": "Request timed out"}
                    self.wire.notify("notifications/cancelled", params)
            case _:
                self.typed = event if self.terminal.process.poll() is None else ""
                self.terminal.type(event)

    # ---------------------------------------------------------------- what must be true of it

    def finish(self) -> str:
        """Return how it ended, once all who are left were told the truth."""
        happened = {*self.events}
        if {"terminal"} == happened & {"terminal", "client", "relay", "server"} and "give up" not in happened:
            self._answer_anew()
        shown = self._close_terminal()
        told = self._read_told() if not {"client", "relay"} & happened else OVER
        made = self.file.read_text() if self.file.exists() else ""
        assert made in ("", "x"), self
        assert not made or self.typed == "yes", self
        assert not made or "the call was not made" not in shown, (self, shown)
        assert {
            WRITTEN: made == "x",
            NO: not made and self.typed == "no",
            NOT_MADE: not made and "server" in happened,
            UNKNOWN: self.typed and "server" in happened,
            ENDS[-1]: "server" in happened,
            OVER: True,
        }[told], (self, told, made, shown)  # fmt: skip
        return told

    def _answer_anew(self) -> None:
        """Answer at another terminal what still waits after the first was killed."""
        with self._terminal() as terminal, suppress(EOFError):
            terminal.read_until("[n]o: ")
            terminal.type("yes")
            self.typed = "yes" if terminal.end()[0] == 0 else self.typed

    def _close_terminal(self) -> str:
        """Return what the person saw; who has not answered yet is too late."""
        if not {"yes", "no", "terminal"} & {*self.events}:
            self.terminal.type("no")
            if not {"client", "relay", "server"} & {*self.events}:
                self.typed = "no"
        return self.terminal.end()[1]

    def _read_told(self) -> str:
        """Return what the client was told, by what it begins or has in it; its next call works."""
        assert self.wire.run("1 + 1").text == "2", self
        if "give up" in self.events:
            return OVER
        text = self.wire.wait(self.request).text
        if waiting := WAITS.search(text):  # so slow is this machine that the server answered before
            text = self.wire.run(f"ot.run_state(id='{waiting[1]}', wait=20)").text
        assert len(self.wire.answers[self.request]) == 1, self
        return next((words for words in ENDS if words in text), text)


def play_round(house: SharedBed, chance: random.Random) -> Counter[str]:
    """Let twelve plays run beside each other, with one shared server, and return how they ended."""
    with ExitStack() as stack:
        plays: list[Play] = []
        for number in range(PLAYS):
            plays.append(Play(house, number, chance))
            stack.callback(lambda play=plays[-1]: play.wire.kill())
            if not number:
                plays[0].ask()  # the server works before the others come
        for play in plays[1:]:
            play.ask()
        questions = wait_for_questions(house)
        for group in batched(plays, AT_ONCE):
            for play in group:
                play.open_terminal(stack, questions)
            for play in group:
                play.terminal.read_until("[n]o: ")
        ended: Counter[str] = Counter()
        late = [play for play in plays if "server" in play.events and play.split()[0][-1:] == ["yes"]]
        act(chance, {play: play.split()[0][: -1 if play in late else None] for play in plays})
        ended.update(play.finish() for play in plays if "server" not in play.events)
        server = house.daemon()
        for play in late:
            play.act("yes")
        time.sleep(chance.uniform(0, MOST_PAUSE))  # some answers have been taken, others not
        kill(server)
        act(chance, {play: play.split()[1] for play in plays})
        wait_until_gone(server)
        ended.update(play.finish() for play in plays if "server" in play.events)
        gone = [pid for play in plays for pid in (play.wire.pid, play.relay) if {"client", "relay"} & {*play.events}]
    wait_while(lambda: [pid for pid in gone if is_alive(pid)])
    wait_while(lambda: list(house.directory.glob("*.ask")))
    return ended


def act(chance: random.Random, events: dict[Play, list[str]]) -> None:
    """Let all of *events* happen: those of one play in their order, those of others in between."""
    left = {play: list(waiting) for play, waiting in events.items() if waiting}
    while left:
        play = chance.choice(list(left))
        play.act(left[play].pop(0))
        if not left[play]:
            del left[play]
        time.sleep(chance.uniform(0, MOST_PAUSE))  # kills come at any moment


def wait_for_questions(house: SharedBed) -> list[dict[str, Any]]:
    """Return the questions of all plays, once they wait."""
    found: list[dict[str, Any]] = []
    for _ in patiently():
        found = [question for path in house.directory.glob("*.ask") for question in listed(path)]
        if len(found) == PLAYS:
            break
    assert len(found) == PLAYS
    return found


def play_rounds(root: Path, seeds: range) -> Counter[str]:
    ended: Counter[str] = Counter()
    with asked_bed(root, CONFIG) as house:
        for seed in seeds:
            ended += play_round(house, random.Random(seed))
        files = {file.suffix for file in house.directory.iterdir()}
    assert files <= {".life", ".log", ".sock", ".start"}
    wait_while(lambda: processes_of(house))
    return ended


@pytest.mark.skipif(sys.platform != "linux", reason="questions wait at terminals of Linux alone")
@pytest.mark.timeout(300)
def test_a_kill_while_a_question_waits_is_reported_truthfully_to_the_rest(tmp_path: Path) -> None:
    assert sum(play_rounds(tmp_path, range(1)).values()) == PLAYS


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_two_hundred_kills_while_questions_wait(tmp_path: Path) -> None:
    ended = play_rounds(tmp_path, range(SOAK_ROUNDS))
    assert {WRITTEN, NO, NOT_MADE} <= {*ended}, ended
