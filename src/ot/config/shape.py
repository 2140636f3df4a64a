"""What keys there are: the models read as one list, for error texts and the reference page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ot.config.sections import whole_model


@dataclass(frozen=True, slots=True)
class SettingKey:
    """One key of a configuration file, as ``limits.calls`` or ``snippets.<name>.body``."""

    path: tuple[str, ...]
    field: FieldInfo

    @property
    def name(self) -> str:
        """The path as people write it."""
        return ".".join(self.path)

    @property
    def description(self) -> str:
        """What the key is for, in one line."""
        return self.field.description or ""

    @property
    def section(self) -> type[BaseModel] | None:
        """The model of the keys below this one, where they are fixed."""
        return _model(self.field.annotation)

    @property
    def possible_section(self) -> type[BaseModel] | None:
        """The same where there may be none."""
        return _model(_if_given(self.field.annotation))

    @property
    def default(self) -> Any:
        """The value of a key that is not given."""
        return self.field.get_default(call_default_factory=True)


def all_keys(model: type[BaseModel] | None = None, above: tuple[str, ...] = ()) -> Iterator[SettingKey]:
    """Yield every key in the models' order, a section before what is in it; without a *model*, of the whole file."""
    for name, field in (model or whole_model()).model_fields.items():
        key = SettingKey((*above, name), field)
        yield key
        if section := key.section:
            yield from all_keys(section, key.path)
        elif entry := _model(_entry_type(field.annotation)):
            yield from all_keys(entry, (*key.path, "<name>"))
        elif part := key.possible_section:
            yield from all_keys(part, key.path)


def names_at(path: tuple[str | int, ...]) -> tuple[str, ...]:
    """Return the keys that may stand below *path*, or none where any name may."""
    kind: Any = whole_model()
    for step in path:
        kind = _if_given(kind)
        model = _model(kind)
        field = model.model_fields.get(str(step)) if model else None
        kind = _entry_type(kind) if model is None else field.annotation if field else None
    model = _model(_if_given(kind))
    return tuple(model.model_fields) if model else ()


def _entry_type(kind: Any) -> Any:
    return get_args(kind)[1] if get_origin(kind) is Mapping else None


def _if_given(kind: Any) -> Any:
    """Return X of ``X | None``."""
    return get_args(kind)[0] if get_origin(kind) is UnionType and get_args(kind)[1:] == (NoneType,) else kind


def _model(kind: Any) -> type[BaseModel] | None:
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
