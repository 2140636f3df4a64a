"""GuideError, and how it becomes a result."""

from __future__ import annotations

from collections.abc import Callable

from mcp_core import Result


class GuideError(Exception):
    """Something that the caller can be told: what, of which kind, and what to do."""

    def __init__(self, error: str, error_type: str, instruction: str) -> None:
        """Carry the fields of a failed result."""
        super().__init__(error, error_type, instruction)
        self.error = error
        self.error_type = error_type
        self.instruction = instruction

    def __str__(self) -> str:
        return self.error


def answer[T](work: Callable[[], T]) -> Result[T]:
    """Return what *work* returns, or its failure, as a result."""
    try:
        return Result.ok(work())
    except GuideError as error:
        return Result.failure(error.error, error.error_type, instruction=error.instruction)
    except OSError as error:
        # Its text alone: the paths of a machine are none of an agent's business.
        why = error.strerror or type(error).__name__
        return Result.failure(f"the documents cannot be reached: {why}", "io_error", instruction="Tell the user.")
