"""The text of a failed run: what happened, where in the model's own code, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ot.errors import (
    InvalidSyntax,
    LimitExceeded,
    LoginNeeded,
    OneToolError,
    ProgramFailed,
    ServerUnavailable,
    ToolError,
    ToolFailed,
    ToolUnavailable,
    WrongCalls,
)
from ot.nearest_names import did_you_mean, listing
from ot.registry.tool_registry import ToolRegistry
from ot.registry.value_shape import Shape, shape_of, shape_text
from ot.runtime.program import Program, find_bound_names

NETWORK = re.compile(
    r"Connect(ion)?\w*|\w*Timeout(Exception)?|ReadError|WriteError|RemoteProtocolError|gaierror|herror|URLError|"
    r"SSL\w*|ProxyError|NetworkError|ServerDisconnectedError|Client\w*(Connection|OS)\w*|BrokenPipeError|MaxRetryError"
)
"""The names of the exceptions with which libraries say that they could not reach somebody."""
HIDDEN = re.compile(r"module '(?P<pack>\w{1,200})' has no attribute '(?P<name>\w{1,200})'")
EARLIER = (
    "'{name}' is from an earlier run, and each run starts without variables: assign it again in this program, "
    'or give run the argument session="work" both times'
)
NO_MODULE = re.compile(r"No module named '(?P<pack>\w{1,200})'")
NO_ATTRIBUTE = re.compile(r"'[\w.]{1,200}' object has no attribute '(?P<name>\w{1,200})'")
UNBOUND = re.compile(r"cannot access local variable '(?P<pack>\w{1,200})'")
MEMBER = re.compile(r"\b(?P<pack>\w{1,200})\.(?P<name>\w{1,200})\b")
OF_JAVASCRIPT = {
    "console": "use print(x)",
    "JSON": "use json.dumps(x) and json.loads(text)",
    "Math": "use the module math, or min(), max(), round() and abs()",
    "undefined": "use None",
}
"""Names of JavaScript that a program may use in valid Python."""
NOTHING_HAS_RUN = "nothing has run: correct this and run the whole program again"
UNDEFINED = re.compile(r"name '(?P<name>[^']{1,200})' is not defined")


def failure_text(
    error: OneToolError,
    program: Program | None,
    registry: ToolRegistry,
    *,
    returned: ReturnedValues | None = None,
    was_assigned: Callable[[str], bool] = lambda name: False,
) -> str:
    """Return type, message, line and hint of *error*.

    *returned* is what tools gave the program, *was_assigned* tells the variables of the caller's earlier runs.
    """
    if isinstance(error, WrongCalls):
        failures = [failure_text(one, program, registry, was_assigned=was_assigned) for one in error.mistakes]
        return "\n".join([*failures, *([str(error.gaps)] if error.gaps else [])])
    if isinstance(error, InvalidSyntax):
        return _with_line(str(error), error.line, error.source, _syntax_hint(error))
    if isinstance(error, ProgramFailed):
        source = program.line(error.line) if program else ""
        hint = _hint_hidden(error, program, registry) or error.hint
        hint = hint or _name_hint(error, program, registry, was_assigned)
        if not hint and returned:
            hint = returned.hint(error.kind, error.message, source)
        if error.inside:
            file, number, text = error.inside
            place = f"\n  {file} line {number}" + (f": {text}" if text else "")
            return _with_line(str(error), error.line, source, "") + place + (f"\n{hint}" if hint else "")
        return _with_line(str(error), error.line, source, hint)
    if isinstance(error, ToolFailed):  # called without a program: in one, it would be the program's own failure
        away = "service unavailable: " if NETWORK.fullmatch(error.kind[:100]) else ""
        return f"{away}{error.tool} failed: {error.kind}: {error.message}".rstrip(": ")
    if isinstance(error, ServerUnavailable):
        return f"service unavailable: {error}"
    return f"{type(error).__name__}: {error}"


def find_failed_call(error: OneToolError, call: ToolError | None) -> ToolError | None:
    """Return *call*, the latest that failed, if *error* is what the program saw of it."""
    said = call.message if isinstance(call, ToolFailed) else str(call)
    return call if isinstance(error, ProgramFailed) and call is not None and said in error.message else None


def failure_cause(error: OneToolError, call: ToolError | None) -> str:
    """Return the cause of *error* in one word; a program sees the failed *call* as one of Python's exceptions."""
    if isinstance(error, ProgramFailed):
        if (cause := find_failed_call(error, call)) is None:
            return error.cause or error.kind
        return cause.kind if isinstance(cause, ToolFailed) else type(cause).__name__
    if isinstance(error, WrongCalls):
        return failure_cause(error.mistakes[0], None)
    return error.limit if isinstance(error, LimitExceeded) else type(error).__name__


def unavailable_service(call: ToolError) -> str:
    """Return a note if *call* failed because its service is away, which no change of the program can mend."""
    name = ""
    if isinstance(call, ToolFailed) and NETWORK.fullmatch(call.kind[:100]):
        name = call.tool
    elif isinstance(call, ServerUnavailable) and not isinstance(call, LoginNeeded):
        name = call.server
    elif isinstance(call, ToolUnavailable) and call.away:
        name = call.pack
    return f"service unavailable: {name}; it is not the program's fault" if name else ""


def _with_line(head: str, line: int | None, source: str, hint: str) -> str:
    where = f"\n  line {line}" + (f": {source}" if source else "") if line else ""
    return head + where + (f"\n{hint}" if hint else "")


def _syntax_hint(error: InvalidSyntax) -> str:
    if error.source.startswith(("```", "~~~")):
        return "give the program alone, or one fenced block of Python"
    return error.hint


def _hint_hidden(error: ProgramFailed, program: Program | None, registry: ToolRegistry) -> str:
    """Say how to reach a pack whose name a module or a variable hides."""
    if error.kind == "UnboundLocalError" and (unbound := UNBOUND.search(error.message)):
        found = next((used for used in _members(error, program) if used["pack"] == unbound["pack"]), unbound)
        return _hint_variable(found["pack"], found.groupdict().get("name", ""), program, registry)
    if error.kind == "AttributeError" and (lacking := NO_ATTRIBUTE.search(error.message)):
        used = [used["pack"] for used in _members(error, program) if used["name"] == lacking["name"]]
        hidden = (pack for pack in used if _has_tool(registry, pack, lacking["name"]))
        return next((_hint_variable(pack, lacking["name"], program, registry) for pack in hidden), "")
    patterns = {"AttributeError": HIDDEN, "ModuleNotFoundError": NO_MODULE}
    found = patterns[error.kind].search(error.message) if error.kind in patterns else None
    if not found or found["pack"] not in registry.packs:
        return ""
    pack, name = found["pack"], found.groupdict().get("name", "")
    hides = f"'import {pack}' hides the pack '{pack}'{_which_has(registry, pack, name)}"
    return f"{hides}: leave the import out, or rename the module: import {pack} as {pack}_module"


def _hint_variable(pack: str, name: str, program: Program | None, registry: ToolRegistry) -> str:
    if pack not in registry.packs or program is None:
        return ""
    lines = (getattr(node, "lineno", 0) for node in program.nodes if pack in find_bound_names(node))
    where = f"line {line}" if (line := next(lines, 0)) else "an earlier run"
    hides = f"the variable '{pack}' ({where}) hides the pack '{pack}'{_which_has(registry, pack, name)}"
    return f"{hides}: give the variable another name, such as {pack}_1"


def _members(error: ProgramFailed, program: Program | None) -> list[re.Match[str]]:
    """Return the ``pack.name`` pairs in the failed line."""
    return list(MEMBER.finditer(program.line(error.line))) if program else []


def _has_tool(registry: ToolRegistry, pack: str, name: str) -> bool:
    return pack in registry.packs and not registry.pack(pack).broken and name in registry.pack(pack).tools


def _which_has(registry: ToolRegistry, pack: str, name: str) -> str:
    return f", which has {name}()" if _has_tool(registry, pack, name) else ""


def _name_hint(
    error: ProgramFailed, program: Program | None, registry: ToolRegistry, was_assigned: Callable[[str], bool]
) -> str:
    """Suggest existing names for an unknown one."""
    found = UNDEFINED.search(error.message) if error.kind == "NameError" else None
    if not found or not program:
        return ""
    name = found["name"]
    if was_assigned(name):
        return EARLIER.format(name=name)
    if name in OF_JAVASCRIPT:
        return f"'{name}' is JavaScript: {OF_JAVASCRIPT[name]}"
    if re.search(rf"\b{re.escape(name)}\s*\.\s*\w", program.source):  # as a pack
        return str(registry.unknown(name))
    if not re.search(rf"\b{re.escape(name)}\s*\(", program.source):  # a variable: a list of tools would say nothing
        near = did_you_mean(name, sorted(program.binds))
        return f"did you mean {near}?" if near else ""
    tools = [tool.full_name for tool in registry.tools()]
    # read_file() and file_read() are file.read().
    named = [(tool, *tool.split(".", 1)) for tool in reversed(tools)]
    called = {form: tool for tool, pack, own in named for form in (own, f"{own}_{pack}", f"{pack}_{own}")}
    guess = did_you_mean(name, list(called))
    hint = f"did you mean {called[guess]}? " if guess else ""
    return f"{hint}Available tools: {listing(name, tools)}"


MOST_TOOLS = 8
SHOWN = 2
MAX_KEPT_CHARS = 256 << 10
"""Of a larger value only the shape is kept."""
KINDS = frozenset({"KeyError", "AttributeError", "TypeError", "IndexError"})
CALLED = re.compile(r"\b(\w{1,200}\.\w{1,200})\s*\(")
OWN_WORDS = re.compile(r"^[\w.]{1,400}\(\)|is not in pack|Expected: |has no attribute '__|^module ")
"""How the door speaks, and modules: of them the values of tools say nothing."""


class ReturnedValues:
    """The last value of each of the tools that a run has called latest."""

    def __init__(self) -> None:
        self._latest: dict[str, Any] = {}

    def note(self, tool: str, value: Any, chars: int) -> None:
        """Take what *tool* returned."""
        self._latest.pop(tool, None)
        self._latest[tool] = value if chars <= MAX_KEPT_CHARS else shape_of(value)
        if len(self._latest) > MOST_TOOLS:
            del self._latest[next(iter(self._latest))]

    def hint(self, kind: str, message: str, line: str) -> str:
        """Return the values of the failing *line*'s or the run's last calls, if the error may be about them."""
        if kind not in KINDS or OWN_WORDS.search(message):
            return ""
        in_line = [tool for tool in CALLED.findall(line) if tool in self._latest]
        tools = in_line or [tool for tool in reversed(self._latest) if not tool.startswith("ot.")]
        return "\n".join(f"{tool}() returned {self._shape(tool)}" for tool in tools[:SHOWN])

    def _shape(self, tool: str) -> str:
        value = self._latest[tool]
        if isinstance(value, list) and not value:
            return "an empty list"
        shape = value if isinstance(value, Shape) else shape_of(value)
        return shape_text(shape) + (": read it by json.loads(...)" if shape.inside else "")
