"""ScriptedSolver: makes the calls that a competent model would make. It is not a model; its rules are these.

Every task is a conversation of its own. In each way the solver first finds the tools that the task needs, unless they
are all listed, then uses them, then answers:

- flat: the calls of one turn of the task are made together, turn after turn.
- search: a turn with one search for each of the task's queries; a tool that none of them found is searched for by its
  name in a turn of its own; then as flat, by ``call_tool``.
- codemode: the same searches; a turn that asks for the schemas of the tools; a turn for each of the task's programs.
- onetool: a turn with ``ot.help`` for each query, a tool that none found by its name; a turn for each program.

Where no definition says what a result looks like, a task has two programs: the first one looks. Nothing goes wrong on
the way and is tried again, and nothing is looked up that is not needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from benchmarks.four_ways.suite import BenchTask, Call
from benchmarks.four_ways.transcript import Exchange, Transcript, WayCall
from benchmarks.four_ways.ways import Way

from onetool_chat.chat_tools import ToolAnswer

Look = Callable[[str], WayCall]
"""Returns the call that looks for tools by some words."""
SCRIPTS = {"flat": "calls", "search": "calls", "codemode": "code_mode", "onetool": "program"}
"""What a task must say to be solved in each way."""


class NotSolved(Exception):
    """The script did not lead to the answer."""


def has_script(task: BenchTask, way: str) -> bool:
    """Return whether *task* says how it is solved in that way."""
    return bool(task.calls and getattr(task, SCRIPTS[way]))


async def solve(task: BenchTask, way: Way) -> Transcript:
    """Return what went back and forth; ``problem`` says why the task was not solved."""
    dialogue = _Dialogue(task, way)
    try:
        await {"flat": _flat, "search": _search, "codemode": _codemode, "onetool": _onetool}[way.name](task, dialogue)
    except NotSolved as why:
        dialogue.transcript.problem = str(why)
    return dialogue.transcript


class _Dialogue:
    """Makes calls and keeps them."""

    def __init__(self, task: BenchTask, way: Way) -> None:
        self.transcript = Transcript(task.name, way.name, way.definition_bytes, task.ask)
        self._way = way

    async def turn(self, calls: Sequence[WayCall]) -> str:
        """Return the answers to *calls*, which are made together.

        Raises:
            NotSolved: One of them failed.
        """
        begun = time.perf_counter()
        answers = await asyncio.gather(*(self._way.execute(name, arguments) for name, arguments in calls))
        self.transcript.exchanges.append(Exchange(calls, answers, time.perf_counter() - begun))
        for (name, _), answer in zip(calls, answers, strict=True):
            _require(answer, name)
        return "\n".join(answer.text for answer in answers)

    async def find(self, task: BenchTask, look: Look, written: Callable[[str], str]) -> None:
        """Look for the tools of *task* until each was seen as it is *written* in answers.

        Raises:
            NotSolved: One of them is not found by its own name.
        """
        seen = await self.turn([look(query) for query in task.queries])
        if missing := [tool for tool in task.tools if written(tool) not in seen]:
            seen += await self.turn([look(tool.replace(".", " ").replace("_", " ")) for tool in missing])
        if lost := [tool for tool in missing if written(tool) not in seen]:
            raise NotSolved(f"the search does not find {', '.join(lost)}")

    async def run(self, task: BenchTask, programs: Sequence[WayCall]) -> None:
        """Run *programs*, one a turn.

        Raises:
            NotSolved: One of them failed, or the last one does not return the answer.
        """
        returned = [await self.turn([program]) for program in programs][-1]
        if not task.is_answered_by(returned):
            raise NotSolved(f"the program's result does not fit {task.answer!r}: {returned[:500]}")


def _require(answer: ToolAnswer, name: str) -> None:
    if answer.is_error:
        raise NotSolved(f"{name}: {answer.text[:500]}")


def _name_in_list(tool: str) -> str:
    return tool.replace(".", "_", 1)


async def _flat(task: BenchTask, dialogue: _Dialogue) -> None:
    for turn in task.turns:
        await dialogue.turn([(_name_in_list(tool), arguments) for tool, arguments in turn])


async def _search(task: BenchTask, dialogue: _Dialogue) -> None:
    await dialogue.find(task, lambda words: ("search_tools", {"query": words}), lambda tool: f'"{_name_in_list(tool)}"')
    for turn in task.turns:
        await dialogue.turn([_through_call_tool(call) for call in turn])


def _through_call_tool(call: Call) -> WayCall:
    return "call_tool", {"name": _name_in_list(call[0]), "arguments": dict(call[1])}


async def _codemode(task: BenchTask, dialogue: _Dialogue) -> None:
    await dialogue.find(task, lambda words: ("search", {"query": words}), lambda tool: f"- {_name_in_list(tool)}")
    await dialogue.turn([("get_schema", {"tools": [_name_in_list(tool) for tool in task.tools]})])
    await dialogue.run(task, [("execute", {"code": program}) for program in task.code_mode])


async def _onetool(task: BenchTask, dialogue: _Dialogue) -> None:
    await dialogue.find(task, lambda words: ("run", {"command": f"ot.help(query={words!r})"}), lambda tool: tool)
    await dialogue.run(task, [("run", {"command": program}) for program in task.program])
