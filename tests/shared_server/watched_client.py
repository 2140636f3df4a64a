"""WatchedClient: a client process that asks without pause, what it has told so far, and what must be true of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from daemon.shared_user import kill
from pace import PATIENCE
from shared_server.shared_house import SharedHouse, own_command

CLIENT = Path(__file__).with_name("steady_client.py")
UNKNOWN = "its effect is not known"
ENDING = "ServerEnding"


class WatchedClient:
    """One client and its relay; a thread reads what the client tells."""

    def __init__(self, house: SharedHouse) -> None:
        """Start the client in *house*."""
        self._process = subprocess.Popen(
            [sys.executable, str(CLIENT), *own_command("serve", "--shared")],
            cwd=house.cwd, env=house.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._told: list[dict[str, Any]] = []
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kill(self.pid)
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self._process.stdout:
            self._process.stdout.close()

    @property
    def pid(self) -> int:
        """The client's process."""
        return self._process.pid

    @property
    def relay(self) -> int:
        """The process of its relay."""
        return next(one["relay"] for one in self.told if "relay" in one)

    @property
    def told(self) -> list[dict[str, Any]]:
        """All that it has told."""
        with self._news:
            return list(self._told)

    def wait_for_answers(self, count: int, *, good: bool = True) -> None:
        """Return when it has had *count* more answers, right ones if they are to be *good*, or has ended."""
        before = self._count(good)
        with self._news:
            enough = self._news.wait_for(lambda: self._ended or self._count(good) >= before + count, PATIENCE * 2)
        assert enough, self._told[-5:]

    def _count(self, good: bool) -> int:
        return sum("answered" in one and (not good or "text" in one) for one in self._told)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # a killed client may leave half of one
                with self._news:
                    self._told.append(json.loads(line))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def check(self) -> None:
        """Every answer is right or says that the effect is not known; each request has one, unless all was over."""
        told = self.told
        assert [one for one in told if "junk" in one] == []
        answers = [one for one in told if "answered" in one]
        wrong = [one for one in answers if not _is_right(one)]
        assert wrong == []
        numbers = [one["answered"] for one in answers]
        assert len(numbers) == len(set(numbers))
        unanswered = {one["asked"] for one in told if "asked" in one} - set(numbers)
        # Those that are open at this moment have been asked just now.
        assert len(unanswered) <= 3


def _is_right(answer: dict[str, Any]) -> bool:
    if "error" in answer:
        return UNKNOWN in answer["error"]
    return answer["text"] == str(answer["answered"] * 7) or (answer["is_error"] and ENDING in answer["text"])
