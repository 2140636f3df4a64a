"""RunDocket: a docket whose tasks are run ids, and from whose messages nothing is ever unpickled."""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Self, override

from docket import Docket
from docket.strikelist import StrikeList

logger = logging.getLogger(__name__)

TASK = "carry_out"
REFUSED = "refused"
"""The name of no task: a worker drops what goes by it."""
RUN_ID = re.compile(rb"[0-9A-Za-z_-]{1,64}\Z")
GENERATION = re.compile(rb"[0-9]{1,9}\Z")
NO_ARGUMENTS, NO_NAMED_ARGUMENTS = pickle.dumps(()), pickle.dumps({})


class RunDocket(Docket):
    """The docket's key of a task is the id of its run, and all that the task carries."""

    def __init__(self, url: str, prefix: str) -> None:
        """Use the keys of Redis at *url* that begin with *prefix*, a colon and ``docket``."""
        # What has ended is in the book: of that, the docket keeps nothing.
        super().__init__(name=f"{prefix}:docket", url=url, execution_ttl=timedelta(0))
        self.tasks.clear()  # those of the library would take arguments
        self._no_strikes = StrikeList()

    @property
    def strike_list(self) -> StrikeList:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A list that is never read from Redis: the library would unpickle what is there."""
        return self._no_strikes

    @strike_list.setter
    def strike_list(self, given: StrikeList) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Take no other."""

    @override
    async def __aenter__(self) -> Self:
        await super().__aenter__()
        async with self.redis() as client:
            _check_answers(client)
        return self

    async def waiting(self) -> int:
        """Return how many runs no worker has taken yet."""
        async with self.redis() as client:
            there: int = await client.xlen(self.stream_key)
            taken: Any = await client.xpending(self.stream_key, self.worker_group_name) if there else None
        return there - taken["pending"] if taken else 0


def _check_answers(client: Any) -> None:
    """Have every message that *client* reads from a stream replaced by a plain one, before anything looks at it."""
    read, claimed = client.response_callbacks["XREADGROUP"], client.response_callbacks["XAUTOCLAIM"]

    def check_read(answer: Any, **options: Any) -> Any:
        found = read(answer, **options)
        for _, messages in found or ():
            _replace(messages)
        return found

    def check_claimed(answer: Any, **options: Any) -> Any:
        found = claimed(answer, **options)
        _replace(found[1])
        return found

    client.set_response_callback("XREADGROUP", check_read)
    client.set_response_callback("XAUTOCLAIM", check_claimed)


def _replace(messages: Iterable[Any]) -> None:
    for message in _bodies(messages):
        plain = plain_message(message)
        message.clear()
        message.update(plain)


def _bodies(messages: Iterable[Any]) -> Iterator[dict[bytes, bytes]]:
    """Yield the fields of each message; one that was deleted meanwhile has none."""
    for found in messages:
        if found and found[1]:
            yield found[1]


def plain_message(message: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the message that carries the run id of *message* and nothing else of it that could do harm."""
    key, generation = message.get(b"key", b""), message.get(b"generation", b"0")
    is_ours = message.get(b"function") == TASK.encode() and RUN_ID.match(key) and GENERATION.match(generation)
    if not is_ours:
        logger.warning("a message on the docket is not a run id, and is dropped: somebody else writes to its keys")
    return {
        b"key": key if is_ours else REFUSED.encode(),
        b"function": TASK.encode() if is_ours else REFUSED.encode(),
        b"generation": generation if is_ours else b"0",
        b"args": NO_ARGUMENTS,
        b"kwargs": NO_NAMED_ARGUMENTS,
        b"attempt": b"1",
        b"when": datetime.now(UTC).isoformat().encode(),
    }
