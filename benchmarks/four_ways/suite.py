"""BenchSuite: tasks for the bench, read from a YAML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from ot.errors import ConfigError

Call = tuple[str, Mapping[str, Any]]
"""A tool as ``pack.tool``, and its arguments."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


def _one_or_several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Programs = Annotated[tuple[str, ...], BeforeValidator(_one_or_several)]
"""Programs that are run one after the other, each in a turn of its own; the last one returns the answer."""


class BenchTask(BaseModel):
    """One task: the question, how its answer is recognised, and how a competent model would solve it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    ask: str
    answer: Annotated[str, AfterValidator(_pattern)]
    find: tuple[str, ...] = ()
    calls: tuple[tuple[dict[str, dict[str, Any]], ...], ...] = ()
    program: Programs = ()
    code_mode: Programs = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """What is searched for: what the task says, or else the question itself."""
        return self.find or (self.ask,)

    @property
    def turns(self) -> list[list[Call]]:
        """The direct calls, turn by turn."""
        return [[pair for call in turn for pair in call.items()] for turn in self.calls]

    @property
    def tools(self) -> list[str]:
        """The tools that the task needs, each once."""
        return list(dict.fromkeys(tool for turn in self.turns for tool, _ in turn))

    def is_answered_by(self, text: str) -> bool:
        """Return whether *text* has the answer in it."""
        return re.search(self.answer, text) is not None

    def fill(self, values: Mapping[str, str]) -> BenchTask:
        """Return the task with ``$name`` replaced in all of its texts by what *values* has for it."""
        return BenchTask.model_validate(_fill(self.model_dump(), values))


class BenchSuite(BaseModel):
    """The tasks of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tasks: tuple[BenchTask, ...]


def read_suite(file: Path) -> BenchSuite:
    """Return the suite that *file* holds.

    Raises:
        ConfigError: The file is unreadable or malformed.
    """
    try:
        return BenchSuite.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"the suite {file} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"the suite {file} is not YAML: {error}") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise ConfigError(f"the suite {file} is malformed: {error}") from None


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return Template(value).safe_substitute(values)
        case dict():
            return {key: _fill(part, values) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_fill(part, values) for part in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
