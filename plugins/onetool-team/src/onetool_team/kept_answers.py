"""KeptAnswers: what was found out about tokens or people, for a moment; the tokens themselves are not kept."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable

MAX_KEPT = 10_000


class KeptAnswers[T]:
    """Answers by what they are about, each until a time of its own; the oldest go first when there are too many."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Keep none yet, and go by the *clock*."""
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, about: Hashable) -> T | None:
        """Return what is known, if it still holds."""
        until, answer = self._kept.get(about, (0.0, None))
        return answer if until > self._clock() else None

    def __contains__(self, about: Hashable) -> bool:
        """Return whether there is an answer, whether or not it still holds."""
        return about in self._kept

    def forget(self, about: Hashable) -> None:
        """Keep nothing about it."""
        self._kept.pop(about, None)

    def put(self, about: Hashable, answer: T, until: float) -> None:
        """Keep *answer* until then."""
        self._kept[about] = until, answer
        self._kept.move_to_end(about)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


def digest_of(token: str) -> bytes:
    """Return what stands for *token*."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
