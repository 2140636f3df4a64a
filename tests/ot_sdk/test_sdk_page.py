"""The page about ot_sdk: its examples run, and it names everything that authors can use."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from worker_client import NewWorker

import ot_sdk
from ot_sdk.tagged import READERS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "ot-sdk.md").read_text(encoding="utf-8")


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A directory with the files that the page shows."""
    for name, text in re.findall(r'```python title="(\S+)"\n(.*?)```', PAGE, re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_pack_on_the_page_runs_in_a_worker(new_worker: NewWorker, examples: Path) -> None:
    worker = new_worker()
    worker.on_call_tool = lambda params: f"sunny at {params['arguments']['url']}"
    secrets = {"WEATHER_TOKEN": "0123456789"}
    worker.init(examples / "weather_tools.py", settings={"unit": "F"}, secrets=secrets)
    text = "sunny at https://weather.example/Oslo?token=[secret:WEATHER_TOKEN]"
    assert {"city": "Oslo", "unit": "F", "text": text} == worker.call("forecast", city="Oslo")
    assert ["sunny at https://weather.example/Rome"] == worker.call("compare", cities=["Rome"])


def test_the_test_on_the_page_passes(examples: Path) -> None:
    path = [str(examples), str(Path(ot_sdk.__file__).parents[1])]
    call = "import test_weather; test_weather.test_the_unit_is_the_one_of_the_settings()"
    code = f"import sys; sys.path[:0] = sys.argv[1:]; {call}"
    done = subprocess.run([sys.executable, "-I", "-c", code, *path], capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)


def test_the_page_names_every_function_and_every_tag() -> None:
    functions = [name for name in ot_sdk.__all__ if name.islower()]
    headings: list[Any] = re.findall(r"^### `(?:await )?(\w+)", PAGE, re.MULTILINE)
    assert sorted(functions) == sorted(set(headings) - {"print"})
    missing = [kind for kind in READERS if f"`{kind}`" not in PAGE]
    assert [] == missing
