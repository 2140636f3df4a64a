"""Where questions of a run go: a client that asks nobody, a terminal of the same user, both, or nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from answering import WRITE, Answering, answer_at_terminal, asking_host, find_socket, waiting_code
from ot.background.held_runs import HeldRun
from ot.execution import waiting_questions
from ot.server import question_places
from ot.server.declining_clients import DecliningClients
from proxied.desk import until
from server.shared_host import SECONDS, SharedHost, SocketTalk, text_of

pytestmark = pytest.mark.anyio

YES = {"action": "accept", "content": {"decision": "allow"}}
NO = {"action": "decline"}
CLIENT = "talk 1"


@pytest.fixture(autouse=True)
def outside_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


async def ended(answer: asyncio.Future[dict[str, Any]]) -> str:
    async with asyncio.timeout(SECONDS):
        return text_of(await answer)


def file_in(shared: SharedHost) -> Path:
    return shared.directory / "one" / "a.txt"


async def answer_elicitation(talk: SocketTalk, answer: Mapping[str, Any]) -> None:
    question = await talk.question()
    talk.send({"id": question["id"], "result": dict(answer)})


async def test_a_client_that_cannot_ask_has_its_question_answered_at_a_terminal(tmp_path: Path) -> None:
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        running = talk.start_run(WRITE)
        question = await answer_at_terminal(YES)
        assert ("file.write", CLIENT, str(tmp_path / "one")) == (
            question["question"]["tool"], question["client"], question["directory"],
        )  # fmt: skip
        assert "written" == await ended(running)
        assert "new" == file_in(shared).read_text()
        assert "the user said no" in (await refused(talk))
        assert find_socket() is None


async def refused(talk: SocketTalk) -> str:
    running = talk.start_run(WRITE)
    await answer_at_terminal(NO)
    return await ended(running)


async def test_a_code_is_good_for_one_answer_and_no_other_code_is_good(tmp_path: Path) -> None:
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        running = talk.start_run(WRITE)
        async with Answering.connect() as answering:
            for code in ("AAAAAA", "", answering.questions[0]["code"].lower() + " ", "*"):
                assert "refused" in await answering.say(YES, code or "-")
            assert not running.done()
            assert {"taken": True} == await answering.say(NO)
            assert "refused" in await answering.say(YES)
            assert "the user said no" in await ended(running)
            assert not file_in(shared).exists()


async def test_progress_says_which_question_waits_and_how_it_is_answered(tmp_path: Path) -> None:
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        call = {"name": "run", "arguments": {"command": WRITE}, "_meta": {"progressToken": "p"}}
        running = talk.ask("tools/call", call)
        await until(lambda: bool(talk.notifications))
        code = await waiting_code()
        said = talk.notifications[-1]["params"]["message"]
        assert f"file.write asks first; answer in a terminal: onetool answer {code}" == said
        await answer_at_terminal(YES)
        assert "written" == await ended(running)


async def test_a_client_is_answered_before_its_limit_and_the_run_goes_on_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_places, "HOLD_SECONDS", 0.05)
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        told = await talk.run(WRITE)
        code = await waiting_code()
        assert f"onetool answer {code}\n" in told
        run = told.partition('ot.run_state(id="')[2].partition('"')[0]
        assert told == await talk.run(WRITE)
        state = yaml.safe_load(await talk.run(f"ot.run_state(id={run!r})"))
        assert ("asks", f"onetool answer {code}") == (state["state"], state["answer_with"])
        assert "file.write" in state["question"]
        await answer_at_terminal(YES)
        state = yaml.safe_load(await talk.run(f"ot.run_state(id={run!r}, wait=20)"))
        assert ("done", ["written"]) == (state["state"], state["texts"])
        assert "no run" in await talk.run(f"ot.run_state(id={run!r})")
        assert not talk.connection.workspace.open_runs


async def test_a_program_that_waited_is_not_begun_again_by_the_same_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_places, "HOLD_SECONDS", 0.05)
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        await talk.run(WRITE)
        await answer_at_terminal(YES)
        await until(lambda: not talk.connection.workspace.open_runs)
        file_in(shared).unlink()
        assert (await talk.run(WRITE)).startswith("written\nnote: this is what the run came to")
        assert not file_in(shared).exists()


@pytest.mark.parametrize(("reason", "goes_on"), [("McpError: Request timed out", True), ("AbortError", False)])
async def test_a_clients_time_limit_parks_the_run_and_its_user_ends_it(
    tmp_path: Path, reason: str, goes_on: bool
) -> None:
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        talk.start_run(WRITE)
        async with Answering.connect() as answering:
            talk.send({"method": "notifications/cancelled", "params": {"requestId": talk.last_id, "reason": reason}})
            assert "2" == await talk.run("1 + 1")
            said = await answering.say(YES)
            assert goes_on == ("taken" in said)
            if goes_on:
                await until(lambda: not talk.connection.workspace.open_runs)
                assert "written" in await talk.run(WRITE)
            await until(lambda: not talk.connection.workspace.open_runs)
            assert goes_on == file_in(shared).exists()


async def test_a_run_that_was_answered_is_not_said_to_wait() -> None:
    run = HeldRun("program")
    run.code = "ABC234"
    assert "onetool answer ABC234" in run.text()
    run.code = ""
    assert "answered" in run.text() and "onetool answer" not in run.text()


async def test_a_held_run_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_places, "HOLD_SECONDS", 0.05)
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        run = (await talk.run(WRITE)).partition('ot.run_state(id="')[2].partition('"')[0]
        assert "failed" in await talk.run(f"ot.cancel(id={run!r})")
        await until(lambda: not talk.connection.workspace.open_runs)
        assert not file_in(shared).exists()


async def test_a_question_ends_with_its_client(tmp_path: Path) -> None:
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        talk.start_run(WRITE)
        async with Answering.connect() as answering:
            await talk.aclose()
            shared.talks.clear()
            assert "refused" in await answering.say(YES)
            assert not file_in(shared).exists()


# ---------------------------------------------------------------- where questions go


async def test_a_no_too_fast_for_a_person_is_asked_at_a_terminal_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_places, "FAST_SECONDS", SECONDS)
    async with asking_host(tmp_path) as shared:
        talk = await shared.client(elicitation={})
        learned = DecliningClients(shared.user)
        for count in (1, 2):
            running = talk.start_run(WRITE)
            await answer_elicitation(talk, NO)
            await answer_at_terminal(YES)
            assert "written" == await ended(running)
            assert {CLIENT: count} == learned.counts()
        # It is still asked: with a person before it, the same client shows a dialogue.
        running = talk.start_run(WRITE)
        await answer_elicitation(talk, YES)
        assert "written" == await ended(running)
        assert {} == learned.counts()
        # Whoever answered that may know the next question at a glance.
        running = talk.start_run(WRITE)
        await answer_elicitation(talk, NO)
        assert "the user said no" in await ended(running)
        assert {} == learned.counts()


@pytest.mark.parametrize(("fast", "answer"), [(0.0, NO), (SECONDS, YES)])
async def test_an_answer_that_somebody_can_have_given_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: float, answer: Mapping[str, Any]
) -> None:
    monkeypatch.setattr(question_places, "FAST_SECONDS", fast)
    async with asking_host(tmp_path) as shared:
        learned = DecliningClients(shared.user)
        learned.note(CLIENT, declined=True)
        talk = await shared.client(elicitation={})
        running = talk.start_run(WRITE)
        await answer_elicitation(talk, answer)
        assert ("written" if answer is YES else "the user said no") in await ended(running)
        assert {} == learned.counts()


@pytest.mark.parametrize(
    ("questions", "can", "ci", "words"),
    [
        ("nowhere", {"elicitation": {}}, "", "questions go nowhere by the setting policy.questions"),
        ("client", {}, "", "it offers no elicitation"),
        ("auto", {}, "1", "it offers no elicitation"),
    ],
)
async def test_where_nobody_is_to_be_asked_the_call_is_denied_at_once(
    tmp_path: Path, questions: str, can: dict[str, Any], ci: str, words: str
) -> None:
    async with asking_host(tmp_path, questions) as shared:
        talk = await shared.client(environ={"CI": ci}, **can)
        said = await talk.run(WRITE)
        assert words in said
        assert 'policy: {allow: ["file.write"]}' in said


@pytest.mark.parametrize("first", ["client", "terminal"])
async def test_with_both_the_first_answer_counts_and_the_other_is_not_asked_for_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setattr(question_places, "FAST_SECONDS", 0.0)
    async with asking_host(tmp_path, "both") as shared:
        talk = await shared.client(elicitation={})
        running = talk.start_run(WRITE)
        question = await talk.question()
        async with Answering.connect() as answering:
            if first == "terminal":
                assert "taken" in await answering.say(NO)
                assert "the user said no" in await ended(running)
                talk.send({"id": question["id"], "result": YES})
            else:
                talk.send({"id": question["id"], "result": NO})
                assert "the user said no" in await ended(running)
                assert "refused" in await answering.say(YES)
            assert "2" == await talk.run("1 + 1")
            assert not file_in(shared).exists()


async def test_with_both_a_client_that_declines_by_itself_does_not_take_the_answer_away(tmp_path: Path) -> None:
    async with asking_host(tmp_path, "both") as shared:
        talk = await shared.client(elicitation={})
        running = talk.start_run(WRITE)
        await answer_elicitation(talk, NO)
        await answer_at_terminal(YES)
        assert "written" == await ended(running)


async def test_a_question_that_nobody_answers_in_time_is_a_no(tmp_path: Path) -> None:
    async with asking_host(tmp_path, ask_seconds=0.1) as shared:
        said = await (await shared.client()).run(WRITE)
        assert "nobody answered within 0.1 s by onetool answer" in said
        assert "onetool allow file.write" in said


@pytest.mark.parametrize("notifier", ['printf "%s\\n" "$@" > {told}; exec sleep 600', "exit 3", ""])
async def test_the_desktop_is_told_of_a_question_where_the_user_wants_it_and_nothing_waits_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notifier: str
) -> None:
    monkeypatch.setattr(waiting_questions, "NOTIFY_SECONDS", 0.5)
    told, program = tmp_path / "told.txt", tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    if notifier:
        program.write_text("#!/bin/sh\n" + notifier.format(told=told))
        program.chmod(0o755)
    async with asking_host(tmp_path, notify=True) as shared:
        talk = await shared.client(environ={"PATH": f"{program.parent}:/bin:/usr/bin"})
        running = talk.start_run(WRITE)
        code = await waiting_code()
        if "told" in notifier:
            await until(lambda: told.exists() and told.read_text().count("\n") == 3)
            assert f"--\nOneTool: file.write asks first\nIn a terminal: onetool answer {code}\n" == told.read_text()
        await answer_at_terminal(YES)
        assert "written" == await ended(running)
        await until(lambda: not waiting_questions._notifying)
