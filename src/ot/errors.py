"""Every error that OneTool raises, as classes that carry data.

    OneToolError
    ├── ConfigError             a configuration file cannot be used
    ├── TrustError              a project's files may not be used as asked
    ├── EngineUnavailable       the engine that the settings ask for cannot be had
    ├── CommandError            the text given to run() is not a program
    │   ├── CommandTooLong
    │   ├── InvalidSyntax       Python's own parser refused it
    │   ├── NotSupported        the engine lacks it, or would answer differently from CPython
    │   └── SnippetError        a $snippet could not be expanded
    ├── ToolError               a call ended without a value
    │   ├── UnknownPack
    │   ├── UnknownTool
    │   ├── NotOffered          a chat model asked for a tool that it was not given
    │   ├── InvalidArguments
    │   │   └── AmbiguousArgument
    │   ├── NotPlainData        a live object was about to cross between a program and a tool
    │   │   └── DataTooLarge
    │   ├── ToolDenied
    │   ├── DefinitionChanged   a proxied tool is not as its user approved it
    │   │   └── NotApproved     the tool asks first, and the user did not say yes to this call
    │   ├── CannotAsk           the user would have to be asked, and cannot be
    │   ├── ServerUnavailable   the proxied server of the tool is not connected
    │   ├── ToolTimeout
    │   ├── ToolBusy
    │   ├── ToolUnavailable     the tool's pack cannot be loaded
    │   ├── ToolFailed          the tool raised
    │   ├── WorkerDied          the pack's process ended before it answered
    │   └── ResultTooLarge      the tool's value is larger than a program may hold
    ├── SessionError            a session cannot be had, listed or saved as asked
    ├── RunError                a program ended without an outcome
    │   ├── ProgramFailed       it raised
    │   ├── LimitExceeded
    │   ├── EngineCrashed
    │   ├── Overloaded
    │   └── SessionLost         the session that the run names has ended, and its variables with it
    ├── ResultError             a stored result cannot be read
    │   ├── ResultNotFound
    │   ├── ResultExpired
    │   └── StorageFull
    └── ChatError               a question to a chat model got no answer
        ├── MissingExtra        a library that it needs is not installed
        ├── ChatRefused         the model's service refused the request
        ├── ChatUnavailable     the model's service is away
        │   └── RateLimited
        ├── BadReply            the reply ended early, or cannot be read
        ├── ChatTimeout
        └── TooManyTurns

Fields come first, text for people is made in ``__str__``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class OneToolError(Exception):
    """The root of everything that OneTool raises on purpose."""


# ---------------------------------------------------------------- configuration


class ConfigError(OneToolError):
    """A configuration file cannot be used."""

    def __init__(self, message: str, *, file: Path | None = None, line: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.file}" + (f":{self.line}" if self.line else "") + ": " if self.file else ""
        return f"{place}{self.message}" + (f" ({self.hint})" if self.hint else "")


class TrustError(OneToolError):
    """A project's files may not be used as asked."""


class EngineUnavailable(OneToolError):
    """The settings ask for an engine, or a layer of its jail, that this machine does not have."""

    def __init__(self, engine: str, why: str) -> None:
        super().__init__(engine, why)
        self.engine = engine
        self.why = why

    def __str__(self) -> str:
        return (
            f"the {self.engine} engine cannot be had as engines.use and engines.exact.require_layers ask: {self.why}. "
            "Without these settings the server uses the strongest that can be had"
        )


# ---------------------------------------------------------------- the command


class CommandError(OneToolError):
    """The text given to run() is not a program."""


class CommandTooLong(CommandError):
    """The command is larger than ``limits.command_bytes``, or a program of too many tokens."""

    def __init__(self, size: int | None, limit: int) -> None:
        """Tell a size in bytes; without one it is the tokens that are too many."""
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        if self.size is None:
            return f"the program has more than {self.limit:,} tokens: write it as several, and data as one text"
        return f"the command has {self.size:,} bytes, at most {self.limit:,} are allowed (limits.command_bytes)"


class InvalidSyntax(CommandError):
    """Python's own parser refused the command."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None, source: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.source = source

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Gap:
    """One place of a program that an engine cannot answer as CPython would."""

    line: int
    what: str
    instead: str = ""


class NotSupported(CommandError):
    """The engine lacks something that the program uses; nothing of it has run."""

    def __init__(self, gaps: Sequence[Gap], engine: str) -> None:
        super().__init__(tuple(gaps), engine)
        self.gaps = tuple(gaps)
        self.engine = engine

    def __str__(self) -> str:
        shown = [f"line {gap.line}: {gap.what}" + (f"; {gap.instead}" if gap.instead else "") for gap in self.gaps[:5]]
        more = len(self.gaps) - len(shown)
        return "\n".join([f"the {self.engine} engine cannot run this; nothing was run", *shown]) + (
            f"\nand {more} more" if more > 0 else ""
        )


class SnippetError(CommandError):
    """A ``$snippet`` could not be expanded."""


# ---------------------------------------------------------------- a tool call


MAX_NAME = 200
"""Characters of a pack's, tool's or parameter's name; a longer one is malformed, and an error shows its beginning."""


def nearest_names(wanted: str, names: Sequence[str], limit: int = 20) -> list[str]:
    """Return at most *limit* of *names*, those most like *wanted* first."""
    if len(names) <= limit:
        return sorted(names)
    from rapidfuzz import process  # noqa: PLC0415 - only an error's text needs it, no start-up should pay for it

    return [name for name, _, _ in process.extract(wanted[:MAX_NAME], names, limit=limit)]


def did_you_mean(wanted: str, names: Sequence[str]) -> str:
    """Return the one name that *wanted* is probably a slip of, or nothing."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - as above

    found = process.extractOne(wanted[:MAX_NAME], names, scorer=fuzz.ratio, score_cutoff=70)
    return found[0] if found else ""


def listing(wanted: str, names: Sequence[str]) -> str:
    """Return the names nearest to *wanted* as text, and how many more there are."""
    shown = nearest_names(wanted, names)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


class ToolError(OneToolError):
    """A call ended without a value."""


class UnknownPack(ToolError):
    """No pack has this name."""

    def __init__(self, pack: str, packs: Sequence[str]) -> None:
        super().__init__(pack)
        self.pack = pack[:MAX_NAME]
        self.packs = tuple(packs)

    def __str__(self) -> str:
        guess = did_you_mean(self.pack, self.packs)
        return (
            f"there is no pack '{self.pack}'"
            + (f", did you mean '{guess}'?" if guess else ".")
            + (f" Available packs: {listing(self.pack, self.packs)}")
        )


class UnknownTool(ToolError):
    """The pack has no such function."""

    def __init__(self, pack: str, name: str, functions: Sequence[str], note: str = "") -> None:
        super().__init__(pack, name)
        self.pack = pack[:MAX_NAME]
        self.name = name[:MAX_NAME]
        self.functions = tuple(functions)
        self.note = note

    def __str__(self) -> str:
        guess = did_you_mean(self.name, self.functions)
        text = f"'{self.name}' is not in pack '{self.pack}'" + (f", did you mean '{guess}'?" if guess else ".")
        text += f" Available functions: {listing(self.name, self.functions)}"
        return text + (f". {self.note}" if self.note else "")


class NotOffered(ToolError):
    """A chat model asked for a tool that it was not given, whether or not there is one."""

    def __init__(self, name: str, offered: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.offered = tuple(offered)

    def __str__(self) -> str:
        name = self.name[:100]
        guess = did_you_mean(name, self.offered)
        return (
            f"there is no tool '{name}'"
            + (f", did you mean '{guess}'?" if guess else ".")
            + f" Available tools: {listing(name, self.offered)}"
        )


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's parameters."""

    def __init__(self, tool: str, message: str, signature: str = "") -> None:
        super().__init__(tool, message)
        self.tool = tool
        self.message = message
        self.signature = signature

    def __str__(self) -> str:
        return self.message + (f". Expected: {self.signature}" if self.signature else "")


class AmbiguousArgument(InvalidArguments):
    """Two given names mean the same parameter."""

    def __init__(self, tool: str, parameter: str, given: tuple[str, str], signature: str = "") -> None:
        first, second = given
        super().__init__(tool, f"{tool}(): '{first}' and '{second}' both mean '{parameter}'", signature)
        self.parameter = parameter
        self.given = given


class NotPlainData(ToolError):
    """A value that is not plain data was about to cross between a program and a tool."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.where = where
        self.what = what

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class DataTooLarge(NotPlainData):
    """A value is plain data, but too much of it."""


class ToolDenied(ToolError):
    """The operator's policy forbids the call."""

    def __init__(self, tool: str, pattern: str) -> None:
        super().__init__(tool, pattern)
        self.tool = tool
        self.pattern = pattern

    def __str__(self) -> str:
        return f"{self.tool} is denied by the policy (policy.deny: {self.pattern!r})"


class DefinitionChanged(ToolError):
    """A proxied tool is not as its user approved it, and ``policy.changed_definitions`` is ``block``."""

    def __init__(self, tool: str, server: str, what: Sequence[str]) -> None:
        super().__init__(tool, server, tuple(what))
        self.tool = tool
        self.server = server
        self.what = tuple(what)

    def __str__(self) -> str:
        return (
            f"{self.tool} is not as it was approved ({', '.join(self.what)}) and was not called: "
            f"its user can look at it and approve it with 'onetool approve {self.server}'"
        )


class NotApproved(ToolDenied):
    """The tool asks first, and the user did not say yes to this call."""

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(tool, "")
        self.args = (tool, why)
        self.why = why

    def __str__(self) -> str:
        return f"{self.tool} was not called: {self.why}"


class CannotAsk(ToolError):
    """The user would have to be asked, and cannot be: nobody is there, or nobody answered."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the user could not be asked: {self.why}"


class ServerUnavailable(ToolError):
    """A proxied server is not connected, or the connection was lost during the call.

    ``unknown`` is set when the call may have taken effect: it was sent, and no answer came.
    """

    def __init__(self, server: str, why: str, *, retry_seconds: float = 0.0, unknown: bool = False) -> None:
        super().__init__(server, why)
        self.server = server
        self.why = why
        self.retry_seconds = retry_seconds
        self.unknown = unknown

    def __str__(self) -> str:
        when = f"; it is tried again in {self.retry_seconds:.1f} s" if self.retry_seconds else ""
        effect = "; whether the call took effect is not known, and it was not repeated" if self.unknown else ""
        return f"the server '{self.server}' is not available: {self.why}{when}{effect}"


class ToolTimeout(ToolError):
    """The call took longer than its deadline."""

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(tool, seconds)
        self.tool = tool
        self.seconds = seconds

    def __str__(self) -> str:
        return f"{self.tool} did not answer within {self.seconds:g} s and was cancelled"


class ToolBusy(ToolError):
    """Too many calls are waiting already."""

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(tool, why)
        self.tool = tool
        self.why = why

    def __str__(self) -> str:
        return f"{self.tool} is busy: {self.why}"


class ToolUnavailable(ToolError):
    """The pack of the tool cannot be loaded."""

    def __init__(self, pack: str, why: str) -> None:
        super().__init__(pack, why)
        self.pack = pack
        self.why = why

    def __str__(self) -> str:
        return f"pack '{self.pack}' cannot be loaded: {self.why}"


class ToolFailed(ToolError):
    """The tool raised; only the type's name and the message cross, never the object."""

    def __init__(self, tool: str, kind: str, message: str) -> None:
        super().__init__(tool, kind, message)
        self.tool = tool
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class WorkerDied(ToolError):
    """The process of a pack ended before it answered; whether the call took effect is not known."""

    def __init__(self, pack: str, how: str, stderr: str = "") -> None:
        super().__init__(pack, how, stderr)
        self.pack = pack
        self.how = how
        self.stderr = stderr

    def __str__(self) -> str:
        tail = self.stderr.strip()[-1000:]
        out_of_memory = "out of memory: " if "MemoryError" in tail else ""
        words = f". Its last words: {tail}" if tail else ""
        return f"the worker of pack '{self.pack}' died during the call ({out_of_memory}{self.how}){words}"


class ResultTooLarge(ToolError):
    """A tool's value is larger than a program may hold; it is stored instead."""

    def __init__(self, tool: str, size: str, handle: str = "") -> None:
        super().__init__(tool, size, handle)
        self.tool = tool
        self.size = size
        self.handle = handle

    def __str__(self) -> str:
        stored = f"; it is stored: ot.result(handle='{self.handle}')" if self.handle else ""
        return f"the value of {self.tool} is too large for a program ({self.size}){stored}"


# ---------------------------------------------------------------- the run


class RunError(OneToolError):
    """A program ended without an outcome; ``printed`` holds what it had printed until then."""

    printed: str = ""


class ProgramFailed(RunError):
    """The program raised an exception that it did not catch."""

    def __init__(self, kind: str, message: str, line: int | None = None, hint: str = "") -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


class LimitExceeded(RunError):
    """The run used up one of its limits; the program could not catch it."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(limit, message)
        self.limit = limit
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (limits.{self.limit})"


class EngineCrashed(RunError):
    """The engine's process died under the program."""


class Overloaded(RunError):
    """Too many runs are waiting already."""


class SessionLost(RunError):
    """The session that a run names has ended, and its variables with it; nothing has run."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(name, why)

    def __str__(self) -> str:
        return (
            f"session '{self.name}' has ended and its variables are gone: {self.why}. "
            "Nothing has run; run again to start it anew, without variables"
        )


class SessionError(OneToolError):
    """A session cannot be had, listed or saved as asked."""


# ---------------------------------------------------------------- stored results


class ResultError(OneToolError):
    """A stored result cannot be read or written."""


class ResultNotFound(ResultError):
    """No result of this caller has this handle."""

    def __init__(self, handle: str) -> None:
        super().__init__(handle)
        self.handle = handle

    def __str__(self) -> str:
        return f"result '{self.handle[:64]}' not found"


class ResultExpired(ResultError):
    """The result is older than ``output.result_ttl``."""

    def __init__(self, handle: str) -> None:
        super().__init__(handle)
        self.handle = handle

    def __str__(self) -> str:
        return f"result '{self.handle}' has expired"


class StorageFull(ResultError):
    """The result could not be written."""


# ---------------------------------------------------------------- chat


class ChatError(OneToolError):
    """A question to a chat model got no answer."""


class MissingExtra(ChatError):
    """A library that is not part of the plain installation is needed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)
        self.what = what
        self.extra = extra

    def __str__(self) -> str:
        from ot.version import install_command  # noqa: PLC0415 - reads the installation, for those who need this text

        return f"{self.what} needs more than the plain installation: {install_command(self.extra)}"


class ChatRefused(ChatError):
    """The model's service refused the request: a key, a model or a setting is wrong."""

    def __init__(self, service: str, status: int, message: str, hint: str = "") -> None:
        super().__init__(service, status, message)
        self.service = service
        self.status = status
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.service} refused the request ({self.status}): {self.message}" + (
            f" ({self.hint})" if self.hint else ""
        )


class ChatUnavailable(ChatError):
    """The model's service is away; ``again`` is set where another attempt may help."""

    def __init__(self, service: str, why: str, *, again: bool = True) -> None:
        super().__init__(service, why)
        self.service = service
        self.why = why
        self.again = again

    def __str__(self) -> str:
        return f"service unavailable: {self.service}: {self.why}"


class RateLimited(ChatUnavailable):
    """The model's service wants fewer requests; ``retry_after`` is how many seconds it said, if it did."""

    def __init__(self, service: str, retry_after: float | None) -> None:
        when = f", it says to wait {retry_after:g} s" if retry_after is not None else ""
        super().__init__(service, f"too many requests{when}")
        self.retry_after = retry_after


class BadReply(ChatError):
    """A model's reply ended early or cannot be read; nothing that it asked for was done."""

    def __init__(self, service: str, why: str) -> None:
        super().__init__(service, why)
        self.service = service
        self.why = why

    def __str__(self) -> str:
        return f"the reply of {self.service} cannot be used: {self.why}; nothing that it asked for was done"


class ChatTimeout(ChatError):
    """No answer came within ``chat.seconds``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"there was no answer within {self.seconds:g} s (chat.seconds)"


class TooManyTurns(ChatError):
    """The model asked for tools again and again."""

    def __init__(self, turns: int) -> None:
        super().__init__(turns)
        self.turns = turns

    def __str__(self) -> str:
        return f"the model still asked for tools after {self.turns} turns (chat.turns); its last calls were not made"
