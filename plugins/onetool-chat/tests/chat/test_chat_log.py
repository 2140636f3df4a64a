"""What the log and the statistics tell of a chat model's calls, and how its user is asked."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest

from answers import BIN, NO, YES, User
from chat.chat_desk import LAMP, calls, talking, text
from onetool_chat.chat_tools import ChatTools
from ot.build import stats_place
from ot.registry.tool_definitions import ToolDefinitions
from run_app import running_app

pytestmark = pytest.mark.anyio


@pytest.mark.scenario("004-02", "004-04")
@pytest.mark.parametrize("provider", ["anthropic", "ollama"])
async def test_every_call_is_logged_with_name_arguments_time_and_result_and_a_failure_with_its_reason(
    provider: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = calls(provider, ("lamp_switch", {"room": "hall"}), ("lamp_broken", {"room": "attic"}))
    async with talking(tmp_path, provider, wanted, text(provider, "ok")) as desk:
        with caplog.at_level(logging.INFO, logger="ot.execution.tool_executor"):
            await desk.talk.ask("go")
    lines = {line.split("tool=")[1].split()[0]: line for line in caplog.messages if line.startswith("tool.call")}
    good, bad = lines["lamp.switch"], lines["lamp.broken"]
    assert good.startswith("tool.call SUCCESS ") and "client=chat" in good and "arguments=room='hall'" in good
    assert "result={'room': 'hall', 'on': True}" in good
    assert bad.startswith("tool.call FAILED") and "errorType=RuntimeError" in bad
    assert "errorMessage=the lamp of attic is broken" in bad
    assert desk.seen.answers["lamp_broken"].text == "lamp.broken failed: RuntimeError: the lamp of attic is broken"


async def test_statistics_have_one_row_for_each_call_of_a_chat(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"lamp": LAMP}) as app:
        tools = ChatTools(app, ToolDefinitions.choose(app.picture.registry, ["lamp"]), run="Run it")
        await tools.execute("lamp_switch", {"room": "hall"})
        await tools.execute("run", {"command": "lamp.switch(room='attic')"})
        place = stats_place(app.picture.loaded).file
    with sqlite3.connect(place) as rows:
        assert rows.execute("select count(*) from calls where tool = 'lamp.switch'").fetchone() == (2,)


@pytest.mark.parametrize(("answer", "says"), [(YES, "burnt"), (NO, "was not called")])
async def test_a_tool_that_asks_first_asks_the_user_of_the_chat(
    answer: dict[str, str], says: str, tmp_path: Path
) -> None:
    user = User(answer)
    async with running_app(tmp_path, {"bin": BIN}) as app:
        tools = ChatTools(app, ToolDefinitions.choose(app.picture.registry, ["bin"]), run="Run it", ask=user)
        for name, given in (("bin_burn", {}), ("run", {"command": "bin.burn()"})):
            assert says in (await tools.execute(name, given)).text
    assert len(user.questions) == 2
    assert "bin.burn" in user.questions[0].message


async def test_where_nobody_can_be_asked_the_call_is_not_made(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"bin": BIN}) as app:
        tools = ChatTools(app, ToolDefinitions.choose(app.picture.registry, ["bin"]))
        answer = await tools.execute("bin_burn", {})
    assert answer.is_error and "NotApproved" in answer.text
