"""RunBudget: the time, calls and consent of a run, shared with every run that a tool starts inside it.

FileCalls: what Python's own file functions ask for in one run, as calls of the bundled pack ``file``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from ot.config.models import Limits
from ot.errors import LimitExceeded, UnknownTool
from ot.execution.call_context import CallContext, OpenModel
from ot.execution.consent import RunConsent
from ot.execution.deadline import Deadline
from ot.execution.tool_executor import CallRecord, ToolExecutor
from ot.files.run_writes import RunWrites
from ot.registry.tool import Parameter, Tool

MAX_DEPTH = 4


class RunStart(NamedTuple):
    """One start of a run in the background: its run, its number, and the time that it has."""

    run_id: str
    number: int
    seconds: float


class RunBudget:
    """What is left of a run."""

    def __init__(self, limits: Limits, outer: RunBudget | None = None, seconds: float | None = None) -> None:
        """Start the clock, or share the clock and the calls of the run that this one is started in.

        A run in the background has *seconds*.
        """
        self.depth = outer.depth + 1 if outer else 1
        self.deadline = outer.deadline if outer else Deadline.after(seconds or limits.run_seconds)
        self.consent: RunConsent | None = outer.consent if outer else None
        """What the user of the outermost run has said: a run inside it has nobody else to ask."""
        self.writes: RunWrites = outer.writes if outer else RunWrites(limits.file_bytes)
        self.open_llm: OpenModel | None = outer.open_llm if outer else None
        self.calls = self.file_calls = 0
        self._most_calls, self._most_file_calls = limits.calls, limits.file_calls
        self._root = outer._root if outer else self

    @property
    def calls_used(self) -> tuple[int, int]:
        """The tool calls of the outermost run so far, and how many it may make."""
        return self._root.calls, self._root._most_calls

    def spend_call(self) -> None:
        """Count one tool call, on the outermost run's account; raise LimitExceeded if none are left."""
        root = self._root
        root.calls += 1
        if root.calls > root._most_calls:
            raise LimitExceeded("calls", f"the run made more than {root._most_calls:,} tool calls")

    def spend_file_call(self) -> None:
        """Count one step of Python's own file functions, as above."""
        root = self._root
        root.file_calls += 1
        if root.file_calls > root._most_file_calls:
            used = f"the run used files more than {root._most_file_calls:,} times"
            raise LimitExceeded("file_calls", f"{used}: use fewer, or use file.search")


current_budget: ContextVar[RunBudget | None] = ContextVar("ot_run_budget", default=None)
"""The budget of the run that the current task works for: a run started by a tool finds its parent's here."""


MODULE = "ot_tools._program_files"
ANSWERS = frozenset({"FileExistsError", "FileNotFoundError", "IsADirectoryError", "NotADirectoryError"})


def _tool(
    name: str, step: str, parameters: str = "", *, destructive: bool = False, needs: tuple[str, ...] = ()
) -> Tool:
    """Return the step as the tool *name* of the pack ``file``, whatever pack has that name here.

    A parameter with a ``?`` may be left out.
    """
    declared = [
        Parameter(text.rstrip("?"), "keyword", default="..." if "?" in text else None) for text in parameters.split()
    ]
    reads = True if name in ("info", "list", "read") else None
    return Tool(
        "file",
        name,
        tuple(declared),
        target=f"{MODULE}:{step}",
        destructive=destructive,
        read_only=reads,
        decorated=True,
        needs=needs,
    )


STEPS: Mapping[str, Tool] = {
    "where": _tool("info", "where"),
    "stat": _tool("info", "stat", "path follow?"),
    "link": _tool("info", "link", "path"),
    "scan": _tool("list", "scan", "path after? names?"),
    "read": _tool("read", "read", "path offset? size?"),
    "begin": _tool("write", "begin", "path mode"),
    "write": _tool("write", "write", "path data at?"),
    "truncate": _tool("write", "truncate", "path size"),
    "touch": _tool("write", "touch", "path times? mode?"),
    "make": _tool("make_directory", "make", "path", needs=("file.write",)),
    "remove": _tool("delete", "remove", "path directory?", destructive=True),
    "rename": _tool("move", "rename", "source target", destructive=True, needs=("file.write",)),
}
"""Each step, as the tool that does the same: one policy, one question and one line of the statistics speak of both."""


class FileCalls:
    """Counts, carries out and sums up the file calls of one run."""

    def __init__(
        self, executor: ToolExecutor, budget: RunBudget, context: Callable[[], CallContext], most_bytes: int
    ) -> None:
        """Call through *executor*, on *budget*; a value has at most *most_bytes*."""
        self._executor = executor
        self._budget = budget
        self._context = context
        self._most_bytes = most_bytes // 2  # a value is more than its data
        self._sums: dict[str, CallRecord] = {}
        self._entries = executor.sum_entries()

    async def call(self, step: str, arguments: Mapping[str, Any]) -> Any:
        """Return the value of one step.

        Raises:
            ToolError: It failed; the program may catch it.
            LimitExceeded: The run has used up its file calls; the program may not.
        """
        self._budget.spend_file_call()
        if step not in STEPS:
            raise UnknownTool("file", step, tuple(STEPS))
        if step == "read" and "size" in arguments:
            size = arguments["size"]
            # Less than nothing, and no number, would mean all of the file: no engine asks so, a hostile program may.
            fits = type(size) is int and 0 <= size <= self._most_bytes
            arguments = {**arguments, "size": size if fits else self._most_bytes}
        value, _ = await self._executor.call_tool(STEPS[step], arguments, self._context(), self._add, self._entries)
        return value

    def _add(self, call: CallRecord) -> None:
        """Add a call to the one record of its tool; an error stays only where all failed.

        That a file is missing, or there already, is an answer like any other.
        """
        before = self._sums.get(call.tool)
        call = call._replace(error="") if call.error in ANSWERS else call
        if before is not None:
            error = call.error if before.error else ""
            seconds, chars = before.seconds + call.seconds, before.chars + call.chars
            call = call._replace(seconds=seconds, chars=chars, error=error)
        self._sums[call.tool] = call

    def end(self) -> list[CallRecord]:
        """Tell observers of the calls, one record a tool, and return the records; the ledger has one entry each."""
        self._entries.end()
        records, self._sums = [*self._sums.values()], {}
        for record in records:
            self._executor.tell(record)
        return records
