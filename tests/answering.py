"""Answers questions over the socket that ``onetool answer`` uses, as a person whom nobody doubts."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ot.execution.waiting_questions import WaitingQuestions
from pace import PATIENCE
from proxied.desk import until
from server.shared_host import SECONDS, SharedHost, shared_host

WRITE = "file.write(path='a.txt', content='new')\n'written'"
"""A program that asks on the host below."""


@asynccontextmanager
async def asking_host(directory: Path, questions: str = "auto", **policy: Any) -> AsyncGenerator[SharedHost]:
    """Yield a host on which ``file.write`` asks first, and whose questions anybody may answer over the socket."""
    async with shared_host(directory, {"policy": {"ask": ["file.write"], "questions": questions, **policy}}) as shared:
        shared.host.waiting = WaitingQuestions(lambda pid, began: None)
        yield shared


def find_socket() -> Path | None:
    """Return where the questions of this process wait, if one does."""
    return next(Path(os.environ["XDG_RUNTIME_DIR"], "onetool").glob("*.ask"), None)


class Answering:
    """Speaks to the socket of this process's questions as ``onetool answer`` does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.questions: list[dict[str, Any]] = []

    @classmethod
    @asynccontextmanager
    async def connect(cls) -> AsyncGenerator[Answering]:
        await until(lambda: find_socket() is not None)
        answering = cls(*await asyncio.open_unix_connection(find_socket()))
        try:
            answering.questions = (await answering.read())["questions"]
            yield answering
        finally:
            answering.writer.close()
            await answering.writer.wait_closed()

    async def read(self) -> dict[str, Any]:
        async with asyncio.timeout(SECONDS):
            return json.loads(await self.reader.readline())

    async def say(self, answer: Mapping[str, Any], code: str = "") -> dict[str, Any]:
        self.writer.write(json.dumps({"code": code or self.questions[0]["code"], **answer}).encode() + b"\n")
        return await self.read()


async def answer_at_terminal(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the only question that waits, and return it."""
    async with Answering.connect() as answering:
        (question,) = answering.questions
        assert {"taken": True} == await answering.say(answer)
        return question


async def waiting_code() -> str:
    """Return the code of the only question that waits."""
    async with Answering.connect() as answering:
        (question,) = answering.questions
        return question["code"]


def listed(path: Path) -> list[dict[str, Any]]:
    """Return what waits at the socket."""
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(PATIENCE)
        try:
            server.connect(str(path))
            with server.makefile("rb") as lines:
                return json.loads(lines.readline())["questions"]
        except (OSError, ValueError):
            return []
