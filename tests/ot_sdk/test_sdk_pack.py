"""The pack of a worker as the SDK sees it, and the examples of the SDK's page."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Optional

import pytest
from worker_client import NewWorker

import ot_sdk
from ot_sdk.errors import SettingsError
from ot_sdk.pack import build_config, fit
from ot_sdk.tagged import READERS

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass
class Limits:
    """Settings inside settings."""

    pages: int = 10


@dataclass
class Config:
    """Settings of every kind that there is."""

    name: str
    retries: int = 3
    factor: float = 1.5
    deep: bool = False
    mode: Literal["fast", "slow", 3] = "fast"
    proxy: str | None = None
    base: Optional[Path] = None  # noqa: UP045 - packs write it in both ways
    hosts: list[str] = field(default_factory=list[str])
    pair: tuple[int, str] = (0, "")
    codes: tuple[int, ...] = ()
    tags: set[str] = field(default_factory=set[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    nested: dict[str, list[int | None]] = field(default_factory=dict[str, list[int | None]])
    anything: Any = None
    limits: Limits = field(default_factory=Limits)
    made: int = field(init=False, default=7)

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ValueError("a name must be good")


def module_with(config: Any) -> ModuleType:
    """Return a pack's module that has *config*."""
    module = ModuleType("trial_tools")
    if config is not None:
        module.Config = config  # type: ignore[attr-defined] - a module takes any name
    return module


def build(**settings: Any) -> Any:
    """Return the Config above, built from *settings* and a name."""
    return build_config(module_with(Config), "trial", {"name": "n", **settings})


def test_settings_that_fit_are_taken_as_their_types() -> None:
    built = build(
        retries=5,
        factor=2,
        deep=True,
        mode=3,
        base="/tmp/x",
        hosts=["a"],
        pair=[1, "b"],
        codes=[1, 2],
        tags=["t", "t"],
        headers={"k": "v"},
        nested={"n": [1, None]},
        anything={"free": [1]},
        limits={"pages": 20},
    )
    expected = Config(
        "n",
        5,
        2.0,
        True,
        3,
        None,
        Path("/tmp/x"),
        ["a"],
        (1, "b"),
        (1, 2),
        {"t"},
        {"k": "v"},
        {"n": [1, None]},
        {"free": [1]},
        Limits(20),
    )
    assert expected == built
    assert isinstance(built.factor, float)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retries": "3"}, "tools.trial.retries: expected int, not str"),
        ({"retries": True}, "tools.trial.retries: expected int, not bool"),
        ({"retries": 1.0}, "tools.trial.retries: expected int, not float"),
        ({"factor": True}, "tools.trial.factor: expected float, not bool"),
        ({"deep": 1}, "tools.trial.deep: expected bool, not int"),
        ({"name": None}, "tools.trial.name: expected str, not null"),
        ({"mode": "quick"}, "tools.trial.mode: expected 'fast' or 'slow' or 3, not 'quick'"),
        ({"mode": 3.0}, "tools.trial.mode: expected 'fast' or 'slow' or 3, not float"),
        ({"proxy": 8080}, "tools.trial.proxy: expected str or null, not int"),
        ({"base": 1}, "tools.trial.base: expected Path or null, not int"),
        ({"hosts": "a"}, "tools.trial.hosts: expected list[str], not str"),
        ({"hosts": ["a", 1]}, "tools.trial.hosts[1]: expected str, not int"),
        ({"pair": [1]}, "tools.trial.pair: expected 2 values, not 1"),
        ({"pair": ["1", "b"]}, "tools.trial.pair[0]: expected int, not str"),
        ({"codes": ["x"]}, "tools.trial.codes[0]: expected int, not str"),
        ({"headers": {"k": 1}}, "tools.trial.headers.k: expected str, not int"),
        ({"headers": {1: "v"}}, "tools.trial.headers: expected dict[str, str], not dict"),
        ({"nested": {"n": ["x"]}}, "tools.trial.nested.n[0]: expected int or null, not str"),
        ({"limits": 5}, "tools.trial.limits: expected Limits, not int"),
        ({"limits": {"page": 1}}, "tools.trial.limits.page: there is no such key; did you mean 'pages'?"),
        ({"retrys": 1}, "tools.trial.retrys: there is no such key; did you mean 'retries'?"),
        ({"made": 1}, "tools.trial.made: there is no such key; did you mean 'mode'?"),
        ({"name": "bad"}, "tools.trial: ValueError: a name must be good"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_place_and_type(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build(**settings)
    assert message == str(caught.value)


def test_a_key_that_resembles_nothing_lists_what_there_is() -> None:
    with pytest.raises(SettingsError, match="there is no such key; there are: pages"):
        build_config(module_with(Limits), "trial", {"zzz": 1})


def test_a_missing_key_without_default_is_named() -> None:
    with pytest.raises(SettingsError, match=r"tools\.trial\.name: is missing, and has no default"):
        build_config(module_with(Config), "trial", {})


def test_a_wrong_value_is_not_repeated_in_the_error() -> None:
    with pytest.raises(SettingsError) as caught:
        build(retries="a-token-that-belongs-elsewhere")
    assert "token" not in str(caught.value)


def test_a_pack_without_config_takes_no_settings() -> None:
    assert build_config(module_with(None), "trial", {}) is None
    with pytest.raises(SettingsError, match="its file has no dataclass named Config"):
        build_config(module_with(None), "trial", {"a": 1})
    with pytest.raises(SettingsError, match="its class Config is not a dataclass"):
        build_config(module_with(object), "trial", {"a": 1})


def test_types_that_settings_cannot_have_are_the_packs_mistake() -> None:
    @dataclass
    class Odd:
        when: complex = 0j

    @dataclass
    class Unreadable:
        when: Hashable = 0

    with pytest.raises(SettingsError, match="Config asks for complex, which settings cannot represent"):
        build_config(module_with(Odd), "trial", {"when": 1})
    with pytest.raises(SettingsError, match="the types of class Config cannot be read: NameError"):
        build_config(module_with(Unreadable), "trial", {"when": 1})


@pytest.mark.parametrize("kind", [list, dict, tuple, object, Any])
def test_a_type_that_says_nothing_about_its_parts_takes_any(kind: Any) -> None:
    value: Any = {"a": 1} if kind is dict else [1, "a"]
    assert value == type(value)(fit(value, kind, "key"))


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
