"""What a failed call's reply holds: the exception's class, its text, and the tool's own frames."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from ot_sdk import errors, wire
from ot_sdk.secret import Redactor

MAX_MESSAGE = 8_192
MAX_TRACEBACK = 4_096
CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.Cancelled, wire.CANCELLED),
    (errors.ToolTimeout, wire.TOOL_TIMEOUT),
    (errors.NotPlain, wire.RESULT_REFUSED),
    (errors.ResultTooLarge, wire.RESULT_REFUSED),
    (errors.FrameTooLarge, wire.RESULT_REFUSED),
    (errors.UnknownTool, wire.INVALID_PARAMS),
    (errors.InvalidArguments, wire.INVALID_PARAMS),
)
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - pathlib would cost each start 5 ms


def failure(id: Any, error: BaseException, redactor: Redactor, code: int | None = None) -> wire.Message:
    """Return the reply that says why there is no value."""
    if code is None:
        code = next((code for kind, code in CODES if isinstance(error, kind)), wire.TOOL_FAILED)
    message = cut(redactor.text(_text(error)), MAX_MESSAGE)
    trace = cut(redactor.text(_trace(error)), MAX_TRACEBACK)
    return wire.error(id, code, message, kind=type(error).__name__, traceback=trace)


def cut(text: str, limit: int) -> str:
    """Return at most *limit* characters of *text*, its beginning and its end."""
    if len(text) <= limit:
        return text
    mark = "\n[...]\n"
    head = limit // 4
    return text[:head] + mark + text[len(text) - (limit - head - len(mark)) :]


def _text(error: BaseException) -> str:
    try:
        # A KeyError's text is its key in quotes, and the program that sees it would put it in quotes again.
        return str(error.args[0]) if type(error) is KeyError and len(error.args) == 1 else str(error)
    except BaseException:  # noqa: BLE001 - an exception's own __str__ is other people's code
        return ""


def _trace(error: BaseException) -> str:
    frames = _own_frames(error.__traceback__)
    if frames is None:
        return ""
    try:
        # In here: without a descriptor left it cannot be imported, and the call must be answered all the same.
        import traceback  # noqa: PLC0415 - costs a tenth of a worker's start, and most calls succeed

        return "".join(traceback.format_exception(type(error), error, frames))
    except BaseException:  # noqa: BLE001 - formatting runs other people's code too
        return ""


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return what is left when the worker's own frames, which say nothing to the tool's author, are gone."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_HERE, "<frozen importlib")):
        trace = trace.tb_next
    return trace
