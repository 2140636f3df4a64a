"""A pack's own tests: ot_sdk without a worker."""

from __future__ import annotations

import threading

import pytest

import ot_sdk
from ot_sdk import host
from ot_sdk.testing import Logged, Progressed, use

pytestmark = pytest.mark.anyio


async def test_outside_of_a_worker_notes_go_nowhere_and_questions_say_what_to_write() -> None:
    ot_sdk.log("nobody listens")
    ot_sdk.progress(1, 2)
    for ask in (ot_sdk.config, lambda: ot_sdk.secret("TOKEN"), lambda: ot_sdk.call_tool("a.b")):
        with pytest.raises(ot_sdk.OutsideWorker, match=r"with ot_sdk.testing.use\(...\):"):
            ask()
    with pytest.raises(ot_sdk.OutsideWorker, match=r"ot_sdk.acall_tool\(\)"):
        await ot_sdk.acall_tool("a.b")
    with pytest.raises(ot_sdk.OutsideWorker, match=r"ot_sdk.llm works in a worker"):
        ot_sdk.llm.ask("Who?")
    with pytest.raises(ot_sdk.OutsideWorker, match=r"ot_sdk.llm works in a worker"):
        await ot_sdk.llm.aextract("Who?", {"type": "object"})


def test_a_test_gives_settings_and_secrets() -> None:
    with use(config={"timeout": 3}, secrets={"TOKEN": "value"}):
        assert {"timeout": 3} == ot_sdk.config()
        assert "value" == ot_sdk.secret("TOKEN").reveal()
        with pytest.raises(ot_sdk.SecretNotGranted, match=r'\{"secrets": \["OTHER"\]\}'):
            ot_sdk.secret("OTHER")
    with use(), pytest.raises(ot_sdk.NoConfig, match=r"use\(config=Config\(...\)\)"):
        ot_sdk.config()


def test_what_a_pack_logs_and_tells_is_collected() -> None:
    with use() as told:
        ot_sdk.log("fetched", level="warning", pages=3)
        ot_sdk.progress(1, 4, "a quarter")
    assert [Logged("warning", "fetched", {"pages": 3})] == told.logs
    assert [Progressed(1, 4, "a quarter")] == told.progressed


def test_a_level_that_does_not_exist_is_refused() -> None:
    with use(), pytest.raises(ValueError, match="there are debug, info, warning, error"):
        ot_sdk.log("text", level="warn")  # type: ignore[arg-type] - that is the mistake


async def test_other_tools_are_functions_or_values_of_the_test() -> None:
    async def later(name: str) -> str:
        return f"later {name}"

    with use(tools={"a.value": [1], "a.function": lambda name: f"hello {name}", "a.later": later}) as told:
        assert [1] == ot_sdk.call_tool("a.value")
        assert "hello you" == ot_sdk.call_tool("a.function", name="you")
        assert "hello you" == await ot_sdk.acall_tool("a.function", name="you")
        assert "later you" == await ot_sdk.acall_tool("a.later", name="you")
        with pytest.raises(TypeError, match=r"the test's a\.later is async"):
            ot_sdk.call_tool("a.later", name="you")
    assert ("a.value", {}) == told.called[0]
    assert ("a.function", {"name": "you"}) == told.called[1]


async def test_a_tool_of_the_test_that_fails_fails_as_it_would_through_the_server() -> None:
    def fail() -> None:
        raise KeyError("missing")

    async def fail_later() -> None:
        raise KeyError("missing")

    with use(tools={"a.fail": fail, "a.later": fail_later}):
        for name in ("a.fail", "a.later"):
            with pytest.raises(ot_sdk.ToolCallFailed) as caught:
                await ot_sdk.acall_tool(name)
            assert ("KeyError", "'missing'") == (caught.value.kind, caught.value.message)
            assert "KeyError: 'missing'" == str(caught.value)
        with pytest.raises(ot_sdk.ToolCallFailed, match=r"UnknownTool: the test gave no tool 'a\.none'"):
            ot_sdk.call_tool("a.none")


async def test_the_model_is_a_function_or_the_answer_of_the_test() -> None:
    with use(llm=lambda text: f"to {text}") as told:
        assert "to Who?" == ot_sdk.llm.ask("Who?")
        assert "to When?" == await ot_sdk.llm.aask("When?")
    assert ["Who?", "When?"] == told.asked
    with use(llm={"name": "Ada"}):
        assert {"name": "Ada"} == ot_sdk.llm.extract("Who?", {"type": "object"})
        assert {"name": "Ada"} == await ot_sdk.llm.aextract("Who?", {"type": "object"})
    with use(), pytest.raises(ot_sdk.ChatError, match=r"use\(llm=...\)"):
        ot_sdk.llm.ask("Who?")


def test_a_test_gives_the_key_of_the_call() -> None:
    assert "" == ot_sdk.idempotency_key()
    with use(key="run-1"):
        assert "run-1" == ot_sdk.idempotency_key()


def test_threads_of_a_tool_reach_the_same_host() -> None:
    seen: list[object] = []
    with use(config="settings"):
        thread = threading.Thread(target=lambda: seen.append(ot_sdk.config()))
        thread.start()
        thread.join()
    assert ["settings"] == seen


def test_what_one_test_gave_is_gone_for_the_next_even_when_it_failed() -> None:
    before = host.current()
    with pytest.raises(ZeroDivisionError), use(config=1), use(config=2):
        assert 2 == ot_sdk.config()
        raise ZeroDivisionError
    assert before is host.current()


def test_the_names_for_authors_are_these() -> None:
    expected = """ChatError NoConfig NotPlain OpenDirectory OutsideWorker SdkError Secret SecretNotGranted SettingsError
        ToolCallFailed acall_tool call_tool config idempotency_key image llm log open_directory open_file progress
        secret"""
    assert expected.split() == ot_sdk.__all__
