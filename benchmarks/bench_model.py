"""Lets a model behind an OpenAI-compatible address solve the tasks of tasks.yaml in four ways.

    python benchmarks/bench_model.py --url http://127.0.0.1:8000/v1 --model NAME [--set 0] [--repeat 3] attempts.jsonl

Every attempt is added to the file as soon as it has ended, and the table is that of all attempts in it.

For models that `onetool chat` reaches, `bench.py tasks.yaml --model NAME` does the same over your own servers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from benchmarks.four_ways.model_solver import Attempt, ModelSolver, summary
from benchmarks.four_ways.suite import BenchTask
from benchmarks.four_ways.ways import WAYS, Way

from onetool_chat.chat_client import Message, Say, ToolCall, Turn, Usage
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.errors import BadReply, ChatRefused
from onetool_chat.settings import Chat
from ot.errors import ChatUnavailable
from ot.registry.tool_definitions import ToolDefinition

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.bench_tasks import SETS, opened

KEY = "OPENAI_API_KEY"
ANSWER_TOKENS = 128
"""Enough for the answers and programs of the tasks; a small model left alone does not stop."""
GAP_SECONDS = 300.0


class CompletionsClient:
    """Asks by OpenAI's chat completions, one whole reply a request."""

    def __init__(self, url: str, model: str, system: str, *, first_call: bool = False) -> None:
        """Ask *model* at *url*, told *system* first; *first_call* makes it begin with a call of the first tool."""
        self.model = model
        self._first_call = first_call
        self._system: list[Message] = [{"role": "system", "content": system}] if system else []
        key = os.environ.get(KEY, "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=GAP_SECONDS)

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        asked: dict[str, Any] = {"model": self.model, "messages": [*self._system, *history]}
        asked |= {"tools": [tool.for_completions() for tool in tools], "max_tokens": ANSWER_TOKENS}
        if self._first_call and len(history) == 1:
            asked["tool_choice"] = {"type": "function", "function": {"name": tools[0].name}}
        try:
            reply = await self._http.post("chat/completions", json=asked)
        except httpx2.HTTPError as error:
            raise ChatUnavailable("the model", str(error) or type(error).__name__, again=False) from None
        if reply.status_code != 200:
            raise ChatRefused("the model", reply.status_code, reply.text[:300], "")
        return _turn(reply.json())

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return a message for each answer, under the id of its call."""
        return [{"role": "tool", "tool_call_id": call.id, "content": answer.text} for call, answer in answers]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _turn(reply: dict[str, Any]) -> Turn:
    try:
        choice: dict[str, Any] = reply["choices"][0]
        used: dict[str, int] = reply.get("usage") or {}
        asked = choice["message"].get("tool_calls") or ()
        calls = [_call(call) for call in asked]
        text = str(choice["message"].get("content") or "")
    except (KeyError, IndexError, TypeError) as error:
        raise BadReply("the model", f"it is malformed: {error!r}") from None
    usage = Usage(used.get("prompt_tokens", 0), used.get("completion_tokens", 0))
    # Some servers take no message back that has no text.
    message: Message = {"role": "assistant", "content": text, **({"tool_calls": asked} if asked else {})}
    return Turn(text, tuple(calls), usage, choice.get("finish_reason") or "", message if text or calls else None)


def _call(call: dict[str, Any]) -> ToolCall:
    function = call["function"]
    try:
        return ToolCall(call["id"], function["name"], json.loads(function["arguments"]))
    except ValueError:
        return ToolCall(call["id"], function["name"], None, "the arguments are not a whole JSON object")


@dataclass(frozen=True)
class KeepingSolver(ModelSolver):
    """Adds every attempt to *file*: a slow model's night is not lost with its last hour."""

    file: Path

    async def attempt(self, task: BenchTask, way: Way) -> Attempt:
        """Return how one try went."""
        found = await super().attempt(task, way)
        with self.file.open("a") as kept:
            print(json.dumps(asdict(found)), file=kept)
        return found


async def ask(solver: ModelSolver, number: int, ways: Sequence[str], repeat: int) -> None:
    """Let a model solve the tasks of one of the sets."""
    async with opened(SETS[number]) as (bench, suite):
        await replace(bench, ways=[way for way in bench.ways if way.name in ways]).ask(suite, solver, repeat)


def line(row: dict[str, Any]) -> str:
    """Return a line of the page's table."""
    low, high = row["pass"]["interval"]
    cells = [f"{row['passed']} of {row['attempts']} ({low:.0%} to {high:.0%})"]
    cells += [f"{row[key]['mean']:,.0f}" for key in ("input", "output")]
    cells += [f"{row[key]['mean']:.1f}" for key in ("turns", "calls", "failed_calls", "seconds")]
    return f"| {row['way']} | {' | '.join(cells)} |"


def main() -> None:
    """Ask, and print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--set", type=int, default=0, help="which of the sets of bench_tasks.py, from 0")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument(
        "--first-call", action="store_true", help="begin with a call of the first tool: for tiny models"
    )
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("file", type=Path)
    given = parser.parse_args()

    def open_model(system: str) -> CompletionsClient:
        return CompletionsClient(given.url, given.model, system, first_call=given.first_call)

    solver = KeepingSolver(open_model, Chat(turns=given.turns, seconds=600), given.file)
    asyncio.run(ask(solver, given.set, given.ways.split(","), given.repeat))
    for row in summary([Attempt(**json.loads(kept)) for kept in given.file.read_text().splitlines()]):
        print(line(row))


if __name__ == "__main__":
    main()
