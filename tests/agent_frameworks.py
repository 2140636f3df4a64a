"""Plays the agents of a page with scripted models: a script, in a process without our warnings and our event loop.

Each model lets a program run, then answers with what came of it. Prints the answers as JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any

from agents import Model, ModelResponse, Usage, set_tracing_disabled
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.models.function import FunctionModel

WRONG = "1/0"
PROGRAM = "sum(len(file.read(path=p).splitlines()) for p in file.glob(pattern='*.txt'))"
QUESTION = "How many lines are in my notes?"


def of_pydantic_ai(messages: list[pydantic_messages.ModelMessage], info: Any) -> pydantic_messages.ModelResponse:
    """Run a program that fails, then one that does not."""
    turn = sum(isinstance(message, pydantic_messages.ModelResponse) for message in messages)
    if turn == 2:
        said: Any = messages[-1].parts[-1]
        return pydantic_messages.ModelResponse([pydantic_messages.TextPart(f"{said.content} lines")])
    call = pydantic_messages.ToolCallPart("run", {"command": (WRONG, PROGRAM)[turn]})
    return pydantic_messages.ModelResponse([call])


class OfLangChain(GenericFakeChatModel):
    """Runs a program when it is asked."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], *args: Any, **options: Any) -> ChatResult:
        if isinstance(said := messages[-1], ToolMessage):
            message = AIMessage(f"{said.content} lines")
        else:
            message = AIMessage("", tool_calls=[{"name": "run", "args": {"command": PROGRAM}, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


class OfOpenAi(Model):
    """Runs a program when it is asked."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        output = input[-1].get("output") if isinstance(input, list) else None
        item = self._call() if output is None else self._answer(output)
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def _call(self) -> ResponseFunctionToolCall:
        call = json.dumps({"command": PROGRAM})
        return ResponseFunctionToolCall(arguments=call, call_id="1", name="run", type="function_call")

    def _answer(self, output: Any) -> ResponseOutputMessage:
        text = output if isinstance(output, str) else output[0]["text"]
        said = ResponseOutputText(annotations=[], text=f"{text} lines", type="output_text")
        return ResponseOutputMessage(id="2", content=[said], role="assistant", status="completed", type="message")

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def main() -> None:
    """Play every agent in the working directory; the page's files are where the first argument says."""
    sys.path.insert(0, sys.argv[1])
    set_tracing_disabled(True)
    models: dict[str, Any] = {
        "with_pydantic_ai": FunctionModel(of_pydantic_ai),
        "with_langchain": OfLangChain(messages=iter(())),
        "with_openai_agents": OfOpenAi(),
        "openai_agents_over_mcp": OfOpenAi(),
    }
    answers = {name: asyncio.run(importlib.import_module(name).answer(QUESTION, m)) for name, m in models.items()}
    print(json.dumps(answers))  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main()
