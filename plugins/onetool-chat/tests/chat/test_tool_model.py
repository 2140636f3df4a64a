"""The model that a bundled tool may ask: a question, and an object that fits a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chat.chat_desk import PROVIDERS, calls, results, text
from chat.wire_server import Scripted, anthropic_error, serving
from ot.errors import ChatError
from ot.execution.tool_context import ToolContext
from ot.files.path_guard import PathGuard
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

ASKING = '''
    from ot.execution.tool_context import current_tool_context

    PERSON = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }


    def shorten(*, text: str) -> str:
        """Sum up."""
        return current_tool_context().llm.ask(f"Sum up: {text}")


    async def shorten_later(*, text: str) -> str:
        """Sum up."""
        return await current_tool_context().llm.aask(f"Sum up: {text}")


    def person(*, text: str) -> dict:
        """Find a person."""
        return current_tool_context().llm.extract(text, PERSON)


    async def person_later(*, text: str) -> dict:
        """Find a person."""
        return await current_tool_context().llm.aextract(text, PERSON)


    def names(*, text: str) -> list:
        """Find names."""
        return current_tool_context().llm.extract(text, {"type": "array"})
'''
ADA = {"name": "Ada", "age": 36}
KEY = "sk-a-key-of-the-environment"


def settings(provider: str, url: str) -> dict[str, Any]:
    return {"chat": {"provider": provider, f"{provider}_url": url, "system": "You are a pirate."}}


async def asked(
    directory: Path, provider: str, command: str, *script: Scripted, is_error: bool = False
) -> tuple[str, list[dict[str, Any]]]:
    """Return what a program that calls a tool came to, and what the model's service was asked."""
    async with (
        serving(*script) as wire,
        running_app(directory, {"asking": ASKING}, settings(provider, wire.url)) as app,
    ):
        reply = await app.run(command)
    return (error_of if is_error else value_of)(reply), wire.requests


def words_of(request: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in request["messages"]]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key")


@pytest.mark.scenario("002-08")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("tool", ["shorten", "shorten_later"])
async def test_a_bundled_tool_asks_a_model(provider: str, tool: str, tmp_path: Path) -> None:
    said, (request,) = await asked(
        tmp_path, provider, f"asking.{tool}(text='a long story')", text(provider, "It is ", "short.")
    )
    assert said == "It is short."
    assert words_of(request) == [("user", "Sum up: a long story")]
    assert not request.get("tools") and "system" not in request


@pytest.mark.scenario("002-08")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("tool", ["person", "person_later"])
async def test_a_bundled_tool_has_an_object_extracted_that_fits_its_schema(
    provider: str, tool: str, tmp_path: Path
) -> None:
    said, (request,) = await asked(
        tmp_path, provider, f"asking.{tool}(text='Ada is 36.')", calls(provider, ("answer", ADA))
    )
    assert json.loads(said) == ADA
    (offered,) = request["tools"]
    schema = offered["input_schema"] if provider == "anthropic" else offered["function"]["parameters"]
    assert schema["required"] == ["name", "age"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_answer_that_does_not_fit_is_objected_to_once(provider: str, tmp_path: Path) -> None:
    wrong = calls(provider, ("answer", {"name": "Ada", "age": "old"}))
    said, requests = await asked(
        tmp_path, provider, "asking.person(text='Ada is 36.')", wrong, calls(provider, ("answer", ADA), first=2)
    )
    assert json.loads(said) == ADA
    (objection,) = results(provider, requests[1])
    assert 'is not of type "integer"' in objection["content"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_that_answers_in_words_is_told_to_use_the_schema_and_given_up_after_two_replies(
    provider: str, tmp_path: Path
) -> None:
    said, requests = await asked(
        tmp_path, provider, "asking.person(text='Ada is 36.')", text(provider, "She is 36."), is_error=True
    )
    assert "it does not match the schema: call the tool `answer` once" in said
    assert len(requests) == 2
    assert words_of(requests[1])[-1] == ("user", "call the tool `answer` once")


async def test_only_the_schema_of_an_object_is_taken(tmp_path: Path) -> None:
    said, requests = await asked(tmp_path, "ollama", "asking.names(text='x')", text("ollama", "x"), is_error=True)
    assert "ValueError: the schema must be that of an object" in said
    assert requests == []


@pytest.mark.scenario("002-08")
async def test_without_a_key_a_tool_learns_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    async with running_app(tmp_path, {"asking": ASKING}) as app:
        said = error_of(await app.run("asking.shorten(text='x')"))
    assert "there is no key for Anthropic's models: put ANTHROPIC_API_KEY into the environment" in said
    assert "chat.provider: ollama" in said


async def test_a_service_that_refuses_is_the_tools_error_and_the_key_is_in_no_text(tmp_path: Path) -> None:
    refused = anthropic_error(401, f"authentication_error for {KEY}")
    said, requests = await asked(tmp_path, "anthropic", "asking.shorten(text='x')", refused, is_error=True)
    assert "Anthropic refused the request (401)" in said
    assert KEY not in said and "[secret:ANTHROPIC_API_KEY]" in said
    assert len(requests) == 1


def test_a_context_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="no language model is available here"):
        _ = ToolContext(PathGuard((tmp_path,)), tmp_path).llm


async def test_the_examples_of_the_page_work(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "pack-model.md").read_text(encoding="utf-8")
    examples = dict(re.findall(r'```python title="(\w+)\.py"\n(.*?)```', page, re.DOTALL))
    pack = tmp_path / "user" / "tools" / "letters"
    pack.mkdir(parents=True)
    (pack / "letters_tools.py").write_text(examples["letters_tools"], encoding="utf-8")
    script = [text("ollama", "A letter."), text("ollama", "A letter."), calls("ollama", ("answer", ADA))]
    async with (
        serving(*script) as wire,
        running_app(tmp_path, {"installed": examples["installed_letters"]}, settings("ollama", wire.url)) as app,
    ):
        for name in ("installed", "letters"):
            assert value_of(await app.run(f"{name}.shorten(text='Dear all')")) == "A letter."
        assert json.loads(value_of(await app.run("letters.sender(text='Dear all')"))) == ADA
