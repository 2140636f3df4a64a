"""What keeps the answer to a request over HTTP from coming, and whether the request can have had an effect."""

from __future__ import annotations


class Refused(Exception):
    """The request was not carried out: nothing was sent, or whoever took it said that it was not let in."""

    def __init__(self, why: str, *, retry_seconds: float = 0.0, unknown: bool = False) -> None:
        """Say *why*; with *unknown*, it may have had an effect after all."""
        super().__init__(why)
        self.retry_seconds = retry_seconds
        self.unknown = unknown


class UnusableReply(Exception):
    """Something came back that is not an answer: the request may have been carried out."""
