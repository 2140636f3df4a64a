"""Sections of ``onetool.yaml`` that plugins bring, each with a model of its own.

A model is imported where its section is written or asked for: a start that does without pays nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from ot import extras, hooks
from ot.config.models import Config
from ot.errors import ConfigError


class SettingsInvalid(Exception):
    """What was written is not settings; *details* say why, as the models do."""

    def __init__(self, details: Sequence[ErrorDetails]) -> None:
        """Take what is wrong, in the core's keys and in the plugins'."""
        super().__init__(details)
        self.details = details


def section_names() -> Collection[str]:
    """Return the sections that plugins add; OneTool's own keys never are."""
    return [hook.name for hook in hooks.hooks(hooks.SETTINGS) if hook.name not in Config.model_fields]


def section_model(name: str) -> type[BaseModel]:
    """Return the model of the section *name*; raise ConfigError if its plugin cannot be imported."""
    hook = hooks.hook_named(hooks.SETTINGS, name)
    assert hook, name
    try:
        return cast("type[BaseModel]", hook.load())
    except Exception as error:  # noqa: BLE001 - other people's code
        why = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{hook.distribution}, which has the settings '{name}', cannot be imported: {why}") from None


def unused_sections(written: Mapping[str, Any]) -> dict[str, str]:
    """Return the sections in *written* that nothing here reads, each with the extra that does."""
    known = {*Config.model_fields, *section_names()}
    return {name: extras.SECTIONS[name] for name in written if name in extras.SECTIONS and name not in known}


def read_settings(written: Mapping[str, Any]) -> Config:
    """Return the settings that are *written* as plain data, those of plugins included.

    Raises:
        SettingsInvalid: Something is wrong.
    """
    theirs, left_out = set(section_names()), unused_sections(written)
    wrong: list[ErrorDetails] = []
    sections: dict[str, BaseModel] = {}
    for name in theirs.intersection(written):
        try:
            sections[name] = section_model(name).model_validate({} if written[name] is None else written[name])
        except ValidationError as error:
            wrong += [cast("ErrorDetails", {**details, "loc": (name, *details["loc"])}) for details in error.errors()]
    try:
        config = Config.model_validate(
            {key: value for key, value in written.items() if key not in theirs and key not in left_out}
        )
    except ValidationError as error:
        raise SettingsInvalid([*error.errors(), *wrong]) from None
    if wrong:
        raise SettingsInvalid(wrong)
    return config.with_sections(sections) if sections else config


def whole_model() -> type[Config]:
    """Return the model with the sections of all plugins, for what is said of settings: schema, reference, errors."""
    added: dict[str, Any] = {}
    for name in section_names():
        model = section_model(name)
        about = (model.__doc__ or "").partition("\n")[0].removesuffix(".")
        added[name] = (model, Field(default_factory=model, description=about))
    return create_model("Config", __base__=Config, **added) if added else Config
