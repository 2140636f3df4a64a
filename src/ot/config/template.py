"""The configuration file that `onetool init` writes: every key, commented out, with its default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ot.config.models import VERSION
from ot.config.project_rules import project_rule
from ot.config.schema import SCHEMA_FILE
from ot.config.shape import Key, all_keys

HEAD = f"""\
# yaml-language-server: $schema=./{SCHEMA_FILE}
# Settings of OneTool. A line that starts with '#' and no space shows a default: take the '#' away to change it,
# and also that of the section above it.
version: {VERSION}
"""


def template() -> str:
    """Return the file's text; it is made from the models, and loads as it is."""
    keys = [key for key in all_keys() if key.path != ("version",) and "<name>" not in key.path]
    return HEAD + "".join(f"{line}\n" for key in keys for line in _lines(key))


def flow(value: Any) -> str:
    """Return *value* as YAML on one line."""
    return json.dumps(value, ensure_ascii=False)


def _lines(key: Key) -> Iterator[str]:
    *above, name = key.path
    indent = "  " * len(above)
    if not above:
        yield ""
    # At the left edge a space marks the explanation; below it, a second '#' does.
    yield f"#{indent}# {_explanation(key)}" if above else f"# {_explanation(key)}"
    yield f"#{indent}{name}:" if key.section else f"#{indent}{name}: {flow(key.default)}"


def _explanation(key: Key) -> str:
    examples = [f"for example {flow(example)}" for example in key.field.examples or []]
    return "; ".join([key.description, *examples, *filter(None, [project_rule(key.path)])])
