"""The bench, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from benchmarks.bench import main

from bench.suites import ALL_PRICES, BUY, shop
from chat.chat_desk import calls, text
from chat.wire_server import serving_aside
from cli.command import OneTool
from ot.cli.exit_codes import BACKEND


@pytest.fixture
def suite(onetool: OneTool) -> Path:
    """A file of tasks, and a user who has the shop."""
    shop(onetool.home)
    file = onetool.cwd / "tasks.yaml"
    file.write_text(yaml.safe_dump(json.loads(json.dumps({"tasks": [ALL_PRICES.model_dump()]}))))
    return file


def test_without_tasks_the_definitions_are_counted_four_ways(onetool: OneTool, suite: Path) -> None:
    ended = onetool.call(main, "bench")
    assert ended.code == 0
    first, _, head, *lines = ended.out.splitlines()
    assert first == "3 tools of 1 server; tokens are bytes / 4"
    assert head.split() == ["way", "listed", "definitions"]
    assert [line.split()[:2] for line in lines] == [
        ["flat", "3"], ["search", "2"], ["codemode", "3"], ["onetool", "1"]
    ]  # fmt: skip


def test_tasks_are_played_by_script_and_the_output_says_so(onetool: OneTool, suite: Path) -> None:
    ended = onetool.call(main, "bench", str(suite), "--ways", "flat,onetool")
    assert ended.code == 0
    assert "Scripted, not by a model:" in ended.out
    found = json.loads(onetool.call(main, "bench", str(suite), "--ways", "flat,onetool", "--json").out)
    assert [(row["task"], row["way"], row["round_trips"]) for row in found["tasks"]] == [
        ("dearest", "flat", 3), ("dearest", "onetool", 3)
    ]  # fmt: skip
    assert found["servers"] == {"shop": 3}


def test_a_script_that_fails_ends_with_one_and_says_what_to_allow(onetool: OneTool, suite: Path) -> None:
    suite.write_text(yaml.safe_dump(json.loads(json.dumps({"tasks": [BUY.model_dump()]}))))
    ended = onetool.call(main, "bench", str(suite), "--ways", "flat")
    assert ended.code == 1
    assert "not solved: buy by flat: shop_buy: " in ended.out
    assert "onetool allow shop.buy" in ended.out


def test_a_model_solves_the_tasks_where_one_is_named(onetool: OneTool, suite: Path) -> None:
    script = calls("ollama", ("run", {"command": ALL_PRICES.program[0]})), text("ollama", "saffron")
    with serving_aside(*script) as wire:
        config = onetool.user / "onetool.yaml"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"chat": {"ollama_url": wire.url}}))
        asked = ("--provider", "ollama", "--model", "small", "--ways", "onetool", "--repeat", "2", "--json")
        ended = onetool.call(main, "bench", str(suite), *asked)
    assert ended.code == 0
    found = json.loads(ended.out)
    assert (found["models"][0]["model"], found["models"][0]["passed"]) == ("small", 2)
    assert [attempt["task"] for attempt in found["attempts"]] == ["dearest"] * 2
    assert "tasks" not in found


def test_a_model_whose_service_is_away_has_not_failed_its_tasks(onetool: OneTool, suite: Path) -> None:
    config = onetool.user / "onetool.yaml"
    # Nothing listens on the port of discarded bytes.
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat": {"ollama_url": "http://127.0.0.1:9"}}))
    ended = onetool.call(main, "bench", str(suite), "--provider", "ollama", "--model", "small")
    assert (ended.code, ended.out) == (BACKEND, "")
    assert "no connection to http://127.0.0.1:9" in ended.err


def test_a_server_that_is_unavailable_is_left_out_and_named(onetool: OneTool) -> None:
    onetool.user.mkdir()
    servers = {"gone": {"command": "no-such-program-anywhere"}}
    (onetool.user / "onetool.yaml").write_text(json.dumps({"servers": servers}))
    ended = onetool.call(main, "bench")
    assert ended.code == 1
    assert "left out: gone: " in ended.err
    assert "no-such-program-anywhere" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["nothing.yaml"], 3, "there is no suite nothing.yaml"),
        (["--model", "small"], 2, "--model needs a suite"),
        (["--ways", "flat,sharp"], 2, "unknown: sharp"),
    ],
)
def test_what_is_asked_wrongly_is_refused(onetool: OneTool, arguments: list[str], code: int, why: str) -> None:
    ended = onetool.call(main, "bench", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert why in " ".join(ended.err.split())
