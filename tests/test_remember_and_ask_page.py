"""The page about remembering and asking a model: its programs, in order, before a model on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chat.answering import answering, input_of
from docs_blocks import DOCS, blocks_of
from run_app import running_app, value_of

PAGE = DOCS / "how-to/remember-and-ask-a-model.md"
PAGES = ("api", "cache", "deploy", "login")
FEEDBACK = "customer,text\nann,Far too slow\nbob,Support was great\ncid,Mumble\ndot,So fast now\n"


def feedback(line: str) -> dict[str, Any]:
    """Return what a model makes of a customer's words; of some it makes nothing."""
    if "Mumble" in line:
        return {"area": "who knows", "positive": True}
    return {"area": "support" if "Support" in line else "speed", "positive": "slow" not in line}


async def model(question: str) -> Any:
    """Answer as the page's programs expect it of a model."""
    if "Which decisions" in question:
        assert "Deploys go out" in input_of(question)
        return {"decisions": [{"decision": "We deploy on Tuesdays only.", "topic": "Deploy"}]}
    if question.startswith("When may we deploy?"):
        (note,) = json.loads(input_of(question))
        return f"{note['text']} ({note['id']})"
    if "customer's feedback" in question:
        return feedback(input_of(question))
    return f"It is about {input_of(question).removeprefix('# ')}."


@pytest.mark.anyio
async def test_the_programs_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "docs").mkdir(parents=True)
    (work / "meeting.md").write_text("Ann: Deploys go out on Tuesdays, agreed? All: yes.\n")
    (work / "feedback.csv").write_text(FEEDBACK)
    for name in PAGES:
        (work / "docs" / f"{name}.md").write_text(f"# {name}")
    decide, answer, sort, sum_up = (block.text for block in blocks_of(PAGE) if block.language == "python")
    async with answering(model) as wire:
        chat = {"provider": "ollama", "ollama_url": wire.url}
        async with running_app(tmp_path, config={"chat": chat}) as app:

            async def play(program: str) -> Any:
                return json.loads(value_of(await app.run(f"__format__ = 'json'\n{program}")))

            assert await play(decide) == [{"tag": "decision", "notes": 1}, {"tag": "deploy", "notes": 1}]
            assert await play(answer) == {"answer": "We deploy on Tuesdays only. (1)", "notes": [1]}
            table = {"speed": {"good": 1, "bad": 1}, "support": {"good": 1, "bad": 0}}
            assert await play(sort) == {"table": table, "failed": ["cid,Mumble"]}
            assert [await play(sum_up) for _ in range(3)] == [
                {"new": 3, "left": 1},
                {"new": 1, "left": 0},
                {"new": 0, "left": 0},
            ]
            kept = await play("[note['start'] for note in memory.list(tags=['summary'])]")
            assert sorted(kept) == [f"docs/{name}.md\nIt is about {name}." for name in PAGES]
