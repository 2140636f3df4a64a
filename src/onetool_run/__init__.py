"""The library: OneTool in your own process, ``async with OneTool() as ot: reply = await ot.run("…")``."""

from __future__ import annotations

import logging

from onetool_run.one_tool import OneTool
from onetool_run.options import EngineName, Format
from onetool_run.questions import Ask, Decision
from onetool_run.tool_summary import ToolSummary
from ot.errors import ConfigError, EngineUnavailable, OneToolError, TrustError
from ot.execution.caller import Answer, Question
from ot.runtime.reply import Reply
from ot.runtime.run_events import (
    CallEnded,
    CallStarted,
    Printed,
    Progress,
    QuestionAnswered,
    QuestionAsked,
    RunEvent,
)

__all__ = [
    "Answer",
    "Ask",
    "CallEnded",
    "CallStarted",
    "ConfigError",
    "Decision",
    "EngineName",
    "EngineUnavailable",
    "Format",
    "OneTool",
    "OneToolError",
    "Printed",
    "Progress",
    "Question",
    "QuestionAnswered",
    "QuestionAsked",
    "Reply",
    "RunEvent",
    "ToolSummary",
    "TrustError",
]

# A library says nothing on standard error until the program that uses it sets up its log.
logging.getLogger("ot").addHandler(logging.NullHandler())
logging.getLogger("ot_tools").addHandler(logging.NullHandler())
