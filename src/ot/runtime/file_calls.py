"""FileCalls: what Python's own file functions ask for in one run, as calls of the bundled pack ``file``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ot.errors import UnknownTool
from ot.execution.backends.backend import CallContext
from ot.execution.tool_executor import CallRecord, ToolExecutor
from ot.registry.tool import Parameter, Tool
from ot.runtime.run_budget import RunBudget

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
        self._entries = executor.summed_entries()

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
