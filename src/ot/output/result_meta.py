"""What is known about a stored result, as it is written beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ot.output.result_files import META, ResultDirectory, file_name

MAX_META_BYTES = 16_384
MAX_OWNER_BYTES = 1024
MAX_TOOL_LENGTH = 200

Count = Annotated[int, Field(ge=0)]

Form = Literal["text", "json", "tagged"]
"""What the content is: any text; JSON with an element or an entry a line; the same with the tags of ``ot_sdk``."""


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A stored result, as its owner sees it."""

    handle: str
    total_lines: int
    size_bytes: int
    created_at: datetime
    tool: str
    form: Form = "text"


class ResultMeta(BaseModel):
    """The content of a result's meta file."""

    model_config = ConfigDict(frozen=True, strict=True)

    version: Literal[1] = 1
    handle: str
    total_lines: Count
    size_bytes: Count
    created_at: AwareDatetime
    tool: str
    owner: str
    form: Form = "text"

    def stored(self) -> StoredResult:
        """Return what the owner may know."""
        return StoredResult(self.handle, self.total_lines, self.size_bytes, self.created_at, self.tool, self.form)


def read_meta(directory: ResultDirectory, handle: str) -> ResultMeta | None:
    """Return a result's meta, or nothing when it is damaged or tells of another result.

    Raises:
        OSError: There is no such file, or it cannot be read.
    """
    text = directory.read_file(file_name(handle, META), MAX_META_BYTES + 1)
    try:
        meta = ResultMeta.model_validate_json(text) if len(text) <= MAX_META_BYTES else None
    except ValidationError:
        return None
    return meta if meta and meta.handle == handle else None
