"""Lists of snippets, and the page of one: its definition, an example, and what the example expands to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ot.config.models import Snippet, SnippetParam
from ot.errors import SnippetError
from ot.introspect.listing import check_info
from ot.output.formats import WIDTH, yaml_flow

Expand = Callable[[str], Awaitable[str]]
"""Returns the program that a ``$name key=value`` stands for."""

MOST_PAGES = 20


async def list_snippets(snippets: Mapping[str, Snippet], pattern: str, info: str, expand: Expand) -> Any:
    """Return the snippets whose name or description contains *pattern*: names, a dict of descriptions, or pages."""
    check_info(info)
    wanted = pattern.lower()
    found = [
        name
        for name, snippet in sorted(snippets.items())
        if wanted in name.lower() or wanted in snippet.description.lower()
    ]
    if info == "list":
        return found
    if info == "min":
        return {name: snippets[name].description for name in found}
    pages = [await snippet_page(name, snippets[name], expand) for name in found[:MOST_PAGES]]
    more = [f"# and {len(found) - MOST_PAGES} more: ot.snippets(info='list')"] if len(found) > MOST_PAGES else []
    return "\n\n---\n".join([*pages, *more])


async def snippet_page(name: str, snippet: Snippet, expand: Expand) -> str:
    """Return the definition of a snippet as YAML, then an example and its expansion."""
    command = example_command(name, snippet)
    try:
        expansion = (await expand(command)).rstrip("\n")
    except SnippetError as error:
        expansion = f"# nothing, because {error}"
    return f"{definition(name, snippet)}\n\n# Example with defaults:\n# {command}\n# Expands to:\n{expansion}"


def definition(name: str, snippet: Snippet) -> str:
    """Return a snippet as it would stand in a configuration."""
    lines = [f"name: {name}", f"description: {yaml_flow([snippet.description])[1:-1]}"]
    lines += ["params:", *map(_param, snippet.params, snippet.params.values())] if snippet.params else ["params: {}"]
    return "\n".join([*lines, _body(snippet.body)])


def example_command(name: str, snippet: Snippet) -> str:
    """Return a call of the snippet that gives what must be given."""
    given = [f" {key}={_show_param(key, param)}" for key, param in snippet.params.items() if not param.optional]
    return f"${name}{''.join(given)}"


def _param(name: str, param: SnippetParam) -> str:
    shown: dict[str, Any] = {"default": param.default} if "default" in param.model_fields_set else {}
    if not param.required and not shown:
        shown["required"] = False
    shown |= {"description": param.description} if param.description else {}
    kind = [f"type: {param.type}"] if param.type else []
    return f"  {name}: {{{', '.join([*kind, *(f'{key}: {_scalar(value)}' for key, value in shown.items())])}}}"


def _scalar(value: Any) -> str:
    import yaml  # noqa: PLC0415 - as in formats

    if not isinstance(value, str):
        return yaml_flow([value])[1:-1] if isinstance(value, int | float | None) else json.dumps(value, default=str)
    text: str = yaml.dump(value, default_style='"', allow_unicode=True, width=WIDTH)
    return text.removesuffix("\n")


def _body(body: str) -> str:
    lines = body.removesuffix("\n").split("\n")
    plain = body.replace("\n", "").replace("\t", "").isprintable()
    if not body.strip() or body[0].isspace() or body.endswith("\n\n") or not plain:
        return f"body: {_scalar(body)}"
    mark = "|" if body.endswith("\n") else "|-"
    return "\n".join([f"body: {mark}", *(f"  {line}" if line else "" for line in lines)])


def _show_param(name: str, param: SnippetParam) -> str:
    text = str(param.example if param.example is not None else f"<{name}>").split("\n")[0].replace("=", "\\=")
    return f'"{text}"' if " " in text else text
