"""A tool that asks first is called as often as the user of the run agrees to; a question is sent, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from answers import BIN, NO, YES, User
from callers import asking
from ot.errors import CannotAsk, ConfigError, NotApproved
from ot.execution.call_context import CallContext, CallForecast
from ot.execution.caller import Answer, Caller, Question
from ot.execution.consent import OneQuestion, RunConsent, agree_to_write, consent_question
from ot.execution.deadline import Deadline
from ot.files.protected_paths import UnknownPlace
from ot.files.run_writes import AsksFirst
from ot.registry.tool import Tool
from ot.server.elicitation import ClientQuestion
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import Calls, error_of, running_app, value_of

pytestmark = pytest.mark.anyio

STARTS = 5
LOOP = "for i in range(50):\n    bin.delete(item=i)\n"
GATHER = "import asyncio\nawait asyncio.gather(*[bin.delete(item=i) for i in range(50)])\n"
ENDLESS = "i = 0\nwhile True:\n    bin.delete(item=i)\n    i += 1\n"
PATIENT_GATHER = """
import asyncio

async def refused(item):
    try:
        await bin.delete(item=item)
    except PermissionError:
        return 1
    return 0

sum(await asyncio.gather(*[refused(i) for i in range(50)]))
"""


async def gone(app: Workspace) -> int:
    """Return how many things were deleted."""
    return int(value_of(await app.run("bin.gone()")))


@pytest.mark.parametrize("program", [LOOP, GATHER])
async def test_where_the_number_of_calls_is_known_a_yes_allows_all_of_them(tmp_path: Path, program: str) -> None:
    user = User(YES)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert not (await app.run(program, asking(user))).is_error
        assert await gone(app) == 50
    (question,) = user.questions
    assert "bin.delete" in question.message
    assert "item=0" in question.message
    assert "up to 50 times" in question.message
    assert "A yes allows all 50, or as many as you say." in question.message
    up_to = question.schema["properties"]["up_to"]
    assert (up_to["default"], up_to["maximum"]) == (50, 50)


async def test_where_the_number_is_not_known_the_call_beyond_a_yes_asks_again(tmp_path: Path) -> None:
    user = User(YES, YES, NO)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        text = error_of(await app.run(ENDLESS, asking(user)))
        assert "PermissionError: bin.delete was not called: the user said no after 20 calls" in text
        assert await gone(app) == 20
    first, second, third = user.questions
    assert first.message.endswith(
        "It may be called any number of times.\nA yes allows 10 calls of it, or as many as you say; "
        "then you are asked again."
    )
    assert "10 calls of it have been made in this run. It may be called any number of times." in second.message
    assert "item=10" in second.message
    assert "20 calls of it have been made in this run." in third.message
    assert first.schema["properties"]["up_to"]["default"] == 10


async def test_a_call_that_the_programs_text_did_not_tell_of_asks_again(tmp_path: Path) -> None:
    user = User(YES)
    program = "bin.delete(item=1)\nagain = getattr(bin, 'delete')\nagain(item=2)\nagain(item=3)"
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert value_of(await app.run(program, asking(user))) == "3"
        assert await gone(app) == 3
    first, second = user.questions
    assert first.message.endswith("\nA yes allows this call.")
    assert "1 call of it has been made in this run. It may be called any number of times." in second.message


async def test_calls_that_wait_for_one_answer_are_all_allowed_by_a_yes(tmp_path: Path) -> None:
    user = User(YES)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert value_of(await app.run(PATIENT_GATHER, asking(user))) == "0"
        assert await gone(app) == 50
    (question,) = user.questions
    assert "50 calls of it are waiting for the answer." in question.message


async def test_calls_beyond_a_smaller_number_than_was_offered_are_refused_unasked(tmp_path: Path) -> None:
    user = User({"decision": "allow", "up_to": 10})
    async with running_app(tmp_path, {"bin": BIN}) as app:
        text = error_of(await app.run(LOOP, asking(user)))
        assert "bin.delete was not called: the user allowed 10 calls of it in this run, and 10 have been made" in text
        assert await gone(app) == 10
    assert len(user.questions) == 1


async def test_a_gather_that_goes_on_after_refusals_makes_as_many_calls_as_the_user_allowed(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert value_of(await app.run(PATIENT_GATHER, asking(User({"decision": "allow", "up_to": 10})))) == "40"
        assert await gone(app) == 10


async def test_the_question_shows_the_line_of_the_program_and_how_many_calls_wait(tmp_path: Path) -> None:
    user = User(YES)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        await app.run(
            "import asyncio\nids = bin.gone() + 3\n" + GATHER.replace("range(50)", "range(ids)"), asking(user)
        )
    assert "Line 4: 'await asyncio.gather(*[bin.delete(item=i) for i in range(ids)])'" in user.questions[0].message
    assert "3 calls of it are waiting for the answer" in user.questions[0].message


@pytest.mark.parametrize(("said", "made"), [(3, 3), (10.0, 10), (1, 1), (50, 50), (10**9, 50)])
async def test_the_user_may_say_another_number(tmp_path: Path, said: Any, made: int) -> None:
    async with running_app(tmp_path, {"bin": BIN}) as app:
        reply = await app.run(LOOP, asking(User({"decision": "allow", "up_to": said})))
        assert reply.is_error == (made < 50)
        assert await gone(app) == made


async def test_the_configuration_may_say_another_number(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"bin": BIN}, {"policy": {"ask_calls": 4}}) as app:
        await app.run(ENDLESS, asking(User(YES, NO)))
        assert await gone(app) == 4


@pytest.mark.parametrize(
    "answer",
    [
        NO,
        {},
        {"decision": "ALLOW"},
        {"decision": True},
        {"decision": ["allow"]},
        {"decision": "allow", "up_to": 0},
        {"decision": "allow", "up_to": -5},
        {"decision": "allow", "up_to": True},
        {"decision": "allow", "up_to": "10"},
        {"decision": "allow", "up_to": None},
        {"decision": "allow", "up_to": float("nan")},
        {"confirmed": True},
        Answer("decline", YES),
        Answer("cancel", YES),
    ],
)
async def test_whatever_is_not_clearly_a_yes_is_a_no_that_holds_for_the_run(tmp_path: Path, answer: Any) -> None:
    user = User(answer)
    caught = "    try:\n        bin.delete(item=i)\n    except PermissionError as e:\n        last = str(e)\n"
    again = f"for i in range(3):\n{caught}last"
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert "the user said no" in value_of(await app.run(again, asking(user)))
        assert len(user.questions) == 1
        assert await gone(app) == 0


async def test_the_next_run_asks_anew(tmp_path: Path) -> None:
    user = User(YES, NO)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert value_of(await app.run("bin.delete(item=1)", asking(user))) == "1"
        assert "said no" in error_of(await app.run("bin.delete(item=2)", asking(user)))
        assert await gone(app) == 1


async def test_each_tool_is_asked_about_on_its_own_one_after_the_other(tmp_path: Path) -> None:
    user = User(YES, NO)
    program = "import asyncio\nawait asyncio.gather(bin.delete(item=1), bin.burn())\n"
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert "bin.burn was not called: the user said no" in error_of(await app.run(program, asking(user)))
        assert [q.message.split()[0] for q in user.questions] == ["bin.delete,", "bin.burn,"]


async def test_who_is_always_asked_may_be_told_so_by_a_pattern_and_who_never_is_too(tmp_path: Path) -> None:
    user = User(NO)
    config = {"policy": {"ask": ["bin.gone"], "allow": ["bin.delete"]}}
    async with running_app(tmp_path, {"bin": BIN}, config) as app:
        assert value_of(await app.run("bin.delete(item=7)", asking(user))) == "7"
        assert "said no" in error_of(await app.run("bin.gone()", asking(user)))
        assert len(user.questions) == 1


async def test_always_is_written_down_and_is_no_longer_asked(tmp_path: Path) -> None:
    user, written = User({"decision": "always"}), []

    async def always(pattern: str) -> None:
        written.append(pattern)

    async with running_app(tmp_path, {"bin": BIN}, allow_always=always) as app:
        assert not (await app.run(LOOP, asking(user))).is_error
        assert await gone(app) == 50
    assert written == ["bin.delete"]
    assert user.questions[0].schema["properties"]["decision"]["enum"] == ["allow", "always", "deny"]


async def test_always_that_cannot_be_written_is_good_for_the_run(tmp_path: Path) -> None:
    async def always(pattern: str) -> None:
        raise ConfigError("the disk is full")

    async with running_app(tmp_path, {"bin": BIN}, allow_always=always) as app:
        assert value_of(await app.run("bin.delete(item=1)", asking(User({"decision": "always"})))) == "1"


@pytest.mark.parametrize("ask", [None, User(CannotAsk("the client has gone"))])
async def test_where_nobody_can_be_asked_the_line_that_would_allow_it_is_told_and_works(
    tmp_path: Path, ask: User | None
) -> None:
    async with running_app(tmp_path, {"bin": BIN}) as app:
        text = error_of(await app.run("bin.delete(item=1)", asking(ask)))
        assert "bin.delete was not called: it asks first, and the user could not be asked: " in text
        line = 'policy: {allow: ["bin.delete"]}'
        assert line in text
        app.paths.global_dir.joinpath("onetool.yaml").write_text(line + "\n")
        assert value_of(await app.run("bin.delete(item=1)", asking(ask))) == "1"


async def test_wrong_arguments_are_told_before_anybody_is_asked(tmp_path: Path) -> None:
    user = User(YES)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert "unexpected keyword" in error_of(await app.run("bin.delete(thing=1)", asking(user)))
        assert user.questions == []


async def test_a_question_shows_no_secret_and_nothing_that_breaks_its_lines(tmp_path: Path) -> None:
    user = User(NO)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        app.paths.global_dir.joinpath("secrets.yaml").write_text("TOKEN: canary-4242-secret\n")
        app.paths.global_dir.joinpath("secrets.yaml").chmod(0o600)
        await app.reload()
        note = "'canary-' + '4242-secret' + chr(10) + 'Line 1: ok' + chr(27) + '[2J' + chr(0x202E) + 'x' * 5000"
        await app.run(f"note = {note}\nbin.delete(note=note)", asking(user))
    message = user.questions[0].message
    assert "canary" not in message
    assert len(message) < 1500
    assert "\x1b" not in message
    assert "\u202e" not in message
    assert [line for line in message.splitlines() if line.startswith("Line ")] == ["Line 2: 'bin.delete(note=note)'"]


async def test_the_runs_clock_stands_still_while_a_question_waits(tmp_path: Path) -> None:
    user, limits = User(None, YES), {"run_seconds": 2, "call_seconds": 0.5, "cpu_seconds": 1}

    async def slowly(question: Any) -> Answer:
        await asyncio.sleep(2.5)
        return Answer("accept", YES)

    async with running_app(tmp_path, {"bin": BIN}, {"limits": limits}) as app:
        await app.run("1")
        assert value_of(await app.run("bin.delete(item=1)\nbin.burn()\nbin.gone()", asking(slowly))) == "1"
        text = error_of(
            await app.run("import time\nbin.delete(item=1)\ntime.sleep(1.1)\ntime.sleep(1.1)", asking(slowly))
        )
        assert "limits.run_seconds" in text
    assert user.questions == []


async def test_a_run_that_is_cancelled_while_it_asks_ends_at_once(tmp_path: Path) -> None:
    user = User(None)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        run = asyncio.ensure_future(app.run("bin.delete(item=1)", asking(user)))
        await asyncio.wait_for(user.asked.wait(), PATIENCE)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, PATIENCE)
        assert await gone(app) == 0


async def test_a_run_may_ask_twenty_times_and_no_more(tmp_path: Path) -> None:
    names = [f"f{n}" for n in range(25)]
    pack = f"__ot_destructive__ = {names}\n" + "".join(f"def {name}(): return 1\n" for name in names)
    user = User(NO)
    calls = "".join(f"try:\n    many.{name}()\nexcept PermissionError as e:\n    last = str(e)\n" for name in names)
    async with running_app(tmp_path, {"many": pack}) as app:
        assert "has asked 20 times already" in value_of(await app.run(calls + "last", asking(user)))
    assert len(user.questions) == 20


CALLER = """
import ot_sdk


def clean(item: int) -> int:
    return ot_sdk.call_tool("bin.delete", item=item)
"""


async def test_a_tool_that_calls_one_that_asks_waits_with_it_and_does_not_answer_for_it(tmp_path: Path) -> None:
    held, asked = asyncio.Event(), list[str]()

    async def slowly(question: Any) -> Answer:
        asked.append(question.message)
        await held.wait()
        return Answer("accept", {"decision": "allow", "up_to": 1})

    tools = tmp_path / "user" / "tools" / "caller"
    tools.mkdir(parents=True)
    (tools / "caller_tools.py").write_text(CALLER)
    config = {"limits": {"call_seconds": 2, "run_seconds": 3}, "policy": {"deny": ["bin.burn"]}}
    async with running_app(tmp_path, {"bin": BIN}, config) as app:
        # The first start of the pack's worker may take a busy machine longer than a run may.
        said = ""
        for _ in range(STARTS):
            if "could not be asked" not in said:
                said = error_of(await app.run("caller.clean(item=1)"))
        assert "could not be asked" in said
        assert await gone(app) == 0
        asyncio.get_running_loop().call_later(4, held.set)
        program = "caller.clean(item=1)\ntry:\n    caller.clean(item=2)\nexcept Exception as e:\n    x = str(e)\nx"
        assert "the user allowed 1 call of it" in value_of(await app.run(program, asking(slowly)))
        assert await gone(app) == 1
    assert len(asked) == 1


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "question",
    [
        Question("half \ud800", {}),
        Question("ok", {"title": "\udfff"}),
        Question("ok", {"default": object()}),
        Question("ok", {"enum": CIRCLE}),
        Question("x" * 100_000, {}),
    ],
    ids=["message", "schema", "object", "loop", "long"],
)
async def test_what_has_no_form_on_a_wire_is_not_asked(question: Question) -> None:
    user = User(YES)
    with pytest.raises(CannotAsk, match="the question "):
        await OneQuestion(user, Deadline.after(10))(question)
    assert user.questions == []


class Session:
    """A session whose sending fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def elicit_form(self, *args: Any, **kwargs: Any) -> Any:
        raise self.error


def serialization_error() -> Exception:
    class Model(BaseModel):
        text: str

    try:
        Model(text="\ud800").model_dump_json()
    except ValueError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "error",
    [serialization_error(), anyio.ClosedResourceError(), anyio.BrokenResourceError(), OSError("gone"), RuntimeError()],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_while_a_question_is_sent_says_that_nobody_could_be_asked(error: Exception) -> None:
    ask = ClientQuestion(Session(error), "1", 5)  # pyright: ignore[reportArgumentType] - stands for one
    with pytest.raises(CannotAsk, match="the question could not be sent"):
        await ask(Question("may I?", {}))


async def test_a_call_without_a_program_is_asked_about_in_its_own_words(tmp_path: Path) -> None:
    user = User(YES)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        assert not (await app.call("bin", "delete", {"item": 1}, asking(user))).is_error
    (question,) = user.questions
    assert question.message.startswith("bin.delete, marked as destructive: a model wants to call it.")
    assert question.message.endswith("A yes allows this call.")
    assert list(question.schema["properties"]) == ["decision"]


async def test_the_time_of_a_call_is_without_the_time_that_its_user_thinks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ot.execution.tool_executor.SLOW_SECONDS", 0.5)

    async def slowly(question: Question) -> Answer:
        await asyncio.sleep(0.6)
        return Answer("decline")

    observed = Calls()
    async with running_app(tmp_path, {"bin": BIN}, observers=[observed]) as app:
        error_of(await app.call("bin", "delete", {"item": 1}, asking(slowly)))
    assert [record.error for record in observed.records] == ["NotApproved"]
    assert observed.records[0].seconds < 0.5
    assert "slow call" not in caplog.text


# ---------------------------------------------------------------- permissions that tools share

TIDY = """
    from ot.execution.tool_context import current_tool_context, wait_in_thread

    __ot_needs__ = {"up": ["file.write"]}


    def up(*, files: int = 2) -> int:
        call = current_tool_context().call
        for number in range(files):
            wait_in_thread(call, "file", "write", (), {"path": f"{number}.txt", "content": "tidy"})
        return files


    def around() -> str:
        return wait_in_thread(current_tool_context().call, "file", "write", (), {"path": "a.txt", "content": "a"})
"""


async def test_a_call_that_needs_a_permission_asks_once_and_its_own_calls_do_not_ask_again(tmp_path: Path) -> None:
    user = User(YES)
    async with running_app(tmp_path, {"tidy": TIDY}, {"policy": {"ask": ["file.write"]}}) as app:
        assert value_of(await app.run("tidy.up()", asking(user))) == "2"
        (question,) = user.questions
        assert question.message.startswith(
            "tidy.up, which needs the permission of file.write: a program wants to call it."
        )
        # To allow tidy.up for good would not be enough, and file.write is more than was asked for.
        assert question.schema["properties"]["decision"]["enum"] == ["allow", "deny"]
        assert not (await app.run("tidy.up()\nfile.write(path='b', content='')", asking(user))).is_error
        assert [one.tool for one in user.questions] == ["tidy.up", "tidy.up", "file.write"]
        assert not (await app.run("tidy.around()", asking(user))).is_error
        assert [one.tool for one in user.questions[3:]] == ["file.write"]
        said = error_of(await app.run("tidy.up()", asking(User(NO))))
        assert "PermissionError: tidy.up was not called: the user said no" in said
        assert "the user runs 'onetool allow file.write'" in error_of(await app.run("tidy.up()"))


async def test_what_a_tool_calls_beside_what_it_needs_is_asked_about_all_the_same(tmp_path: Path) -> None:
    pack = TIDY.replace('"write", (), {"path": f"{number}.txt", "content": "tidy"}', '"delete", (), {"path": "a.txt"}')
    user = User(YES, NO)
    async with running_app(tmp_path, {"tidy": pack}, {"policy": {"ask": ["tidy.up"]}}) as app:
        assert (await app.run("tidy.up()", asking(user))).is_error
    assert [one.tool for one in user.questions] == ["tidy.up", "file.delete"]


class _Slow:
    """Consent that waits until it may be given."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def require(self, tool: Tool, arguments: Any, context: CallContext, need: str = "") -> str:
        raise NotImplementedError

    async def require_again(self, tool: Tool, arguments: Any, why: str, advice: str) -> None:
        self.asked.append(why)
        self.is_asked.set()
        await self.may_answer.wait()


async def test_calls_that_wait_for_the_answer_about_a_name_ask_no_second_time() -> None:
    consent, tool = _Slow(), Tool("file", "write", ())
    context = CallContext(asking(None), "run", 1, float("inf"), consent=consent)
    one, two = (UnknownPlace(("work", name), name) for name in (".one", ".two"))
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE):
        for places in ((one,), (one,), (one, two)):
            tasks.create_task(agree_to_write(AsksFirst(places), tool, {}, context))
        await consent.is_asked.wait()
        consent.may_answer.set()
    assert [why.split(":")[0] for why in consent.asked] == ["it writes '.one'", "it writes '.two'"]
    assert context.writes.answers == {one.path: "", two.path: ""}


async def test_a_question_about_a_name_that_is_given_up_is_not_taken_for_a_yes() -> None:
    consent = _Slow()
    context = CallContext(asking(None), "run", 1, float("inf"), consent=consent)
    place = UnknownPlace(("work", ".one"), ".one")
    call = asyncio.create_task(agree_to_write(AsksFirst([place]), Tool("file", "write", ()), {}, context))
    async with asyncio.timeout(PATIENCE):
        await consent.is_asked.wait()
        call.cancel()
        await asyncio.wait([call])
    with pytest.raises(AsksFirst):
        context.writes.require_agreed([place])


# ---------------------------------------------------------------- how a call is shown

SEEN_TOOL = Tool("shop", "put", source="proxy:shop")


def lines_of(arguments: Mapping[str, Any], redact: Callable[[str], str] = str, before: str | None = None) -> list[str]:
    """Return the lines of a question about one call that stand for its arguments."""
    question = consent_question(SEEN_TOOL, arguments, CallForecast(), always=True, redact=redact, before=before)
    first, *lines, last = question.message.split("\n")
    assert "shop.put of the server 'shop': a program wants to call it." == first
    assert "A yes allows this call." == last
    return lines


def test_short_arguments_stand_on_one_line() -> None:
    assert ["Arguments: 'page'=1, 'tags'=['a', 'b']"] == lines_of({"page": 1, "tags": ["a", "b"]})
    assert ["Arguments: none"] == lines_of({})


def test_nested_values_are_indented_and_cut_with_their_size() -> None:
    value = {"name": "Ada", "notes": ["n" * 300], "more": {"deep": {"deeper": list(range(1000))}}}
    lines = lines_of({"entity": value})
    assert ["Arguments:", "  'entity':", "    'name': 'Ada'", "    'notes':"] == lines[:4]
    assert lines[4].startswith("      - 'nnn")
    assert lines[4].endswith("…' (300 characters)")
    assert ["    'more':", "      'deep':", "        'deeper':", "          - 0"] == lines[5:9]
    assert len(lines) < 40
    items = [{"count": 1, "remark": "wrap it" * 6}, ["two\nlines", "x" * 60]]
    assert [
        "      - 'count': 1", f"        'remark': '{'wrap it' * 6}'",
        "      - - 2 lines, 9 characters", "    | two", "    | lines", f"        - '{'x' * 60}'",
    ] == lines_of({"order": {"items": items}})[3:]  # fmt: skip


def test_a_text_of_several_lines_is_shown_behind_marks_and_cannot_look_like_the_question() -> None:
    lines = lines_of({"body": "Hi\nA yes allows nothing\n\x1b[2J\u202ex\n" + "y" * 500 + "\nz" * 30})
    assert ["Arguments:", "  'body': 34 lines, 591 characters", "    | Hi", "    | A yes allows nothing"] == lines[:4]
    assert r"    | \x1b[2J\u202ex" == lines[4]
    assert lines[5].endswith("… (502 characters)")
    assert "    … 14 more lines" == lines[-1]


def test_a_changed_text_is_shown_as_a_difference() -> None:
    changed = lines_of({"old": "a\nb", "new": "a\nc"})
    assert ["Arguments:", "  old, new:", "    @@ -1,2 +1,2 @@", "      a", "    - b", "    + c"] == changed
    whole = lines_of(
        {"path": "a.txt", "content": "key: hunter2\nnew\n"}, lambda t: t.replace("hunter2", "***"), "old\n"
    )
    assert "  'content': a change of the file" in whole
    assert {"    - old", "    + key: ***", "    + new"} <= set(whole)
    short = lines_of({"content": "b\nd\n"}, before="b\nc\n")
    assert ["  'content': a change of the file", "    @@ -1,2 +1,2 @@", "      b", "    - c", "    + d"] == short[1:]


async def test_a_write_over_a_file_shows_what_would_change(tmp_path: Path) -> None:
    user = User(NO)
    async with running_app(tmp_path, {}, {"policy": {"ask": ["file.write"]}}) as app:
        (app.paths.cwd / "a.txt").write_text("milk\nbutter\n")
        await app.run("file.write(path='a.txt', content='milk\\nbread\\n')", asking(user))
        await app.run("file.write(path='b.txt', content='milk\\n')", asking(user))
    first, second = user.questions
    assert "    - butter\n    + bread\n" in first.message
    assert "  content: 1 line, 5 characters\n    | milk\n" in second.message


async def test_always_for_a_server_allows_its_pack_and_is_not_offered_for_other_packs() -> None:
    written: list[str] = []

    async def always(pattern: str) -> None:
        written.append(pattern)

    def of(tool: Tool) -> Question:
        return consent_question(tool, {}, CallForecast(), always=True, redact=str)

    assert "server" in of(SEEN_TOOL).schema["properties"]["decision"]["enum"]
    own = replace(SEEN_TOOL, source="pack")
    assert "server" not in of(own).schema["properties"]["decision"]["enum"]
    for tool in (SEEN_TOOL, own):
        consent = RunConsent(User({"decision": "server"}), Deadline.after(60), always=always)
        context = CallContext(Caller("me"), "run", 1, 60.0)
        with nullcontext() if tool is SEEN_TOOL else pytest.raises(NotApproved):
            assert "always" == await consent.require(tool, {}, context)
    assert ["shop.*"] == written
