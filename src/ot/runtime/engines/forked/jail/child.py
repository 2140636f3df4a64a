"""A child of the zygote, once it is locked up: it reads a program, runs it and tells its value."""

from __future__ import annotations

import builtins
import contextlib
import io
import random
import sys
import time
import types
from collections.abc import Callable, Mapping
from typing import Any

from ot.runtime.engines.forked.jail import code
from ot.runtime.engines.forked.jail.channel import Channel, MessageTooLarge, dumps, loads
from ot.runtime.engines.forked.jail.file_stubs import FileStubs
from ot.runtime.engines.forked.jail.packs import Door, Pack, ResultEncoder, find_place, later
from ot.runtime.engines.forked.jail.time_stubs import install_time
from ot.runtime.engines.given_time import GivenTime
from ot_sdk.errors import NotPlain
from ot_sdk.tagged import decode

MAX_MESSAGE = 4000
MAX_CAUSES = 5
RECURSION = 1000 + 20
"""As everywhere, beside the calls that led here."""
RESERVE_BYTES = 1 << 20
MAGIC = {"format": "__format__", "sanitize": "__sanitize__"}
NO_VALUE = object()
NAMES: Mapping[str, Any] = {
    code.LATER: later,
    code.NO_VALUE: NO_VALUE,
    code.AWAITABLE: code.awaitable,
    code.NO_LIST: code.no_list,
    code.IMPORT_ALL: code.import_all,
}
LAST_ASSIGNMENT = "last-assignment"
"""The name of this in the table of tolerances."""
LEAST_TOUCH = "1"
LEISURE_SECONDS = 0.01
"""A child that has waited so long is in no hurry: it touches also what fewer programs need."""
TOUCH = """
import math
class Row:
    def __init__(self, name, size=1):
        self.name, self.size = name, size
rows = [Row(f"n{i}", i) for i in range(5)]
def total(items, key=lambda row: row.size):
    return sum(key(item) for item in items)
try:
    found = {row.name.upper(): math.sqrt(row.size) for row in sorted(rows, key=lambda r: -r.size)}
    {}["missing"]
except KeyError as error:
    found["error"] = str(error)
print(*found, sep=", ")
{"rows": [vars(row) for row in rows], "total": total(rows), "found": found, "text": "a,b".split(",")}
"""


def serve_one(fd: int, files: FileStubs | None = None) -> None:
    """Read one program from *fd*, run it and end, or those of one session; the process is locked up already.

    Its own file functions mean *files*.
    """
    channel = Channel(fd)
    _seed()
    main = types.ModuleType("__main__")
    reserve = [bytes(RESERVE_BYTES)]
    if not channel.has_message():  # else somebody waits already
        touch_ahead(LEAST_TOUCH)
        if not channel.has_message(LEISURE_SECONDS):
            touch_ahead()
    _, payload = channel.receive()
    if files:
        files.begin(channel)
    while True:
        start: Mapping[str, Any] = loads(payload.decode())
        channel.allow(start["most_bytes"])
        ending = run_program(channel, start, reserve, main, files)
        reserve.clear()
        _tell(channel, ending)
        if not start["keep"]:
            channel.wait_to_be_ended()
        payload = channel.next_program()
        reserve = [bytes(RESERVE_BYTES)]


def _seed() -> None:
    """Begin random numbers anew: the zygote's own would be the same in every run."""
    random.seed()
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed()


def touch_ahead(source: str = TOUCH) -> None:
    """Run a small program, so that the pages which any program writes to are this process's own already."""
    silent = Channel(fd=-1)
    silent.notify = lambda message: None  # the prints of this program go nowhere
    start: Mapping[str, Any] = {
        "source": source,
        "awaited": [],
        "returns": None,
        "packs": [],
        "called": {},
        "print_bytes": 100,
        "keep": 0,
    }
    run_program(silent, start, [], types.ModuleType("__main__"))
    decode(loads(dumps(ResultEncoder().convert([1, (2.5, None), {"a": b"b"}]))))


def run_program(
    channel: Channel,
    start: Mapping[str, Any],
    reserve: list[bytes],
    main: types.ModuleType,
    files: FileStubs | None = None,
) -> dict[str, Any]:
    """Run the program and return its end, ready to be sent; its names are those of *main*.

    *reserve* is freed when the memory is used up.
    """
    prints = PrintStream(channel.notify, start["print_bytes"])
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = prints
    if given := start.get("given"):
        install_time(GivenTime(*given), channel)
    namespace = _namespace(channel, start, main)
    file = channel.program = _file(start)
    channel.saved = {}
    try:
        value = _evaluate(start, namespace)
        if files:
            files.flush()
        told = _value(value) or (_answers(start, namespace) if prints.is_unused else {})
        magic = {key: _wish(namespace[name]) for key, name in MAGIC.items() if name in namespace}
        ending = told | {"magic": magic} | _report_tolerated(told if value is NO_VALUE else {})
    except BaseException as error:  # noqa: BLE001 - the program's own, of any kind
        if isinstance(error, MemoryError):
            reserve.clear()
        ending = _failure(error, file)
        if channel.saved and (place := find_place(error, channel.saved)):
            ending["error"].append(place)
        if isinstance(error, MemoryError):
            namespace.clear()
        elif files:
            with contextlib.suppress(Exception):  # what it had written before stays written; its own error is told
                files.flush()
    prints.flush()
    notes = {"notes": found} if files and (found := files.end()) else {}
    return ending | {"t": "end", "dropped": prints.dropped} | notes


def _file(start: Mapping[str, Any]) -> str:
    """Return the program's file name: in a session each has its own, because its lines are its own."""
    return code.FILE if start["keep"] < 2 else f"<program {start['keep']}>"


def _namespace(channel: Channel, start: Mapping[str, Any], main: types.ModuleType) -> dict[str, Any]:
    """Return the names that a program starts with; the format of the reply is never an earlier program's."""
    sys.modules["__main__"] = main
    sys.setrecursionlimit(RECURSION)
    for name, value in NAMES.items():
        setattr(builtins, name, value)
    code.used.clear()
    door = Door(channel, start["called"])
    namespace = vars(main)
    for name in MAGIC.values():
        namespace.pop(name, None)
    for name in start["packs"]:
        namespace.setdefault(name, Pack(door, name))  # a session's own variable of that name stays
    namespace["__builtins__"] = builtins
    return namespace


def _evaluate(start: Mapping[str, Any], namespace: dict[str, Any]) -> Any:
    if "asyncio" in start["source"]:
        code.accept_values()
    for name, statement in start.get("prelude", ()):
        if name not in namespace:  # a session may know it
            exec(statement, namespace)
    spans = [(first, last) for first, last in start["awaited"]]
    steps, waits = code.compile_program(start["source"], spans, start["returns"], _file(start))
    if not waits:
        return code.run_plainly(steps, namespace, NO_VALUE)
    import asyncio  # noqa: PLC0415 - loaded by the zygote when it has time

    # Not asyncio.run(): it would wait for abandoned threads.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(code.run_steps(steps, namespace, NO_VALUE))
    finally:
        if start["keep"]:
            loop.close()  # its descriptors would be lacking one day


def _value(value: Any) -> dict[str, Any]:
    if value is NO_VALUE:
        return {}
    try:
        return {"v": ResultEncoder().convert(value)}
    except NotPlain as error:
        return _encode_error("ValueError", f"the result cannot be returned: {error}"[:MAX_MESSAGE])


def _answers(start: Mapping[str, Any], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that the program assigned last, as its value if it has no other; nothing if unclear."""
    names: list[str] = start.get("answers", [])
    if not names or not all(name in namespace for name in names):
        return {}
    found = [namespace[name] for name in names]
    try:
        told = _value(found[0] if len(found) == 1 else found)
    except Exception:  # noqa: BLE001 - the program's own objects, which it did not ask to be told
        return {}
    return {} if "error" in told else told


def _report_tolerated(answered: Mapping[str, Any]) -> dict[str, Any]:
    rows = [*code.used, *([LAST_ASSIGNMENT] if answered else [])]
    return {"tolerated": rows} if rows else {}


def _wish(value: Any) -> Any:
    """Return a program's wish for the reply; an object is named, never called."""
    if value is None or type(value) is bool:
        return value
    return value[:100] if type(value) is str else f"<{type(value).__name__} object>"


def _failure(error: BaseException, file: str) -> dict[str, Any]:
    try:
        text = (str(error) + _causes(error, file))[:MAX_MESSAGE]
    except BaseException:  # noqa: BLE001 - the program's own text of its own error
        text = ""
    return _encode_error(type(error).__name__[:100], text, _line(error, file))


def _causes(error: BaseException, file: str, depth: int = 3) -> str:
    """Return the exceptions of a group, which itself only says how many there are."""
    causes: Any = getattr(error, "exceptions", ()) if isinstance(error, BaseExceptionGroup) and depth else ()  # pyright: ignore[reportUnknownArgumentType] - of any type
    shown: list[str] = []
    for cause in causes[:MAX_CAUSES]:
        line = _line(cause, file)
        place = f" (line {line})" if line else ""
        shown.append(f"\n- {type(cause).__name__}: {cause}{place}{_causes(cause, file, depth - 1)}")
    return "".join(shown)


def _encode_error(kind: str, message: str, line: int | None = None) -> dict[str, Any]:
    return {"error": [kind, message, line]}


def _line(error: BaseException, file: str) -> int | None:
    """Return the innermost line of the program's own text."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == file else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _tell(channel: Channel, ending: dict[str, Any]) -> None:
    try:
        return channel.notify(ending)
    except MessageTooLarge:
        if LAST_ASSIGNMENT in ending.get("tolerated", ()):  # nobody asked for it
            return channel.notify({key: part for key, part in ending.items() if key not in ("v", "tolerated")})
        channel.notify(_encode_error("ValueError", "the result is too large (limits.value_bytes)") | {"t": "end"})
    except MemoryError:
        channel.notify(_encode_error("MemoryError", "") | {"t": "end"})
    return None


# ---------------------------------------------------------------- what stands for standard output and standard error

PROMPT = 500
"""So many prints are sent at once: what was printed before an endless loop is known. More of them are gathered."""
GATHER_BYTES = 8192
GATHER_SECONDS = 0.02


class PrintStream(io.TextIOBase):
    """A text stream that sends what is written, up to a cap, and counts the rest."""

    encoding = "utf-8"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride] - as a real one has it
    errors = "replace"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride] - as above

    def __init__(self, send: Callable[[Any], None], most: int) -> None:
        """Send at most *most* characters with *send*."""
        self._send_message = send
        self._left = most
        self._parts: list[str] = []
        self._size = 0
        self._sent = 0
        self._last = 0.0
        self._now = time.monotonic
        self.dropped = 0

    @property
    def is_unused(self) -> bool:
        """Whether nothing was written."""
        return not (self._sent or self._parts or self.dropped)

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        """Take *text*; return its length."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives what it likes
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        kept = "" if self.dropped else text[: self._left]
        if len(kept) < len(text):
            self.dropped += len(text) - len(kept)
        if kept:
            self._left -= len(kept)
            self._size += len(kept)
            self._parts.append(kept)
            now = self._now()
            if self._sent < PROMPT or self._size >= GATHER_BYTES or now - self._last > GATHER_SECONDS:
                self._last = now
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what was gathered."""
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            self._sent += 1
            self._send_message({"t": "print", "o": "".join(parts)})
