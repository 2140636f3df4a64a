"""Writes docs/reference/packs/, and what `run` says of the bundled packs, from these themselves.

A test fails when one of them is behind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ot_tools
from ot.build import BUNDLED, IN_WORKERS
from ot.introspect.listing import docstring_parts
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.installed_source import installed_packs
from ot.registry.tool import Tool, signature_text
from ot.registry.tool_registry import Pack
from ot.server.run_description import BUNDLED_TOOLS

PAGES = Path(__file__).parent / "reference" / "packs"
BY_HAND = frozenset({"file"})
"""Packs whose page is written by hand, with examples that a test runs."""


def pages() -> dict[str, str]:
    """Return the page of each pack, by its name."""
    workers = {extension.name: extension.directory / extension.main for extension in bundled_extensions(IN_WORKERS)}
    return {pack.name: _page(pack, workers.get(pack.name)) for pack in _packs() if pack.name not in BY_HAND}


def brief() -> str:
    """Return the tools of the bundled packs in brief, a line for each pack."""
    guides = [pack for pack in installed_packs() if pack.name == "guide"]
    lines = {pack.name: " ".join(map(_brief_call, pack.tools.values())) for pack in (*_packs(), *guides)}
    lines["proj"] = "path(name) list"
    return "".join(f"{name}: {line}\n" for name, line in sorted(lines.items()))


def _brief_call(tool: Tool) -> str:
    """Return the name of *tool*, with the parameters that a call must give."""
    required = ",".join(each.name for each in tool.parameters if each.required)
    return f"{tool.name}({required})" if required else tool.name


def _packs() -> list[Pack]:
    return [*BUNDLED.packs(), *(extension.pack() for extension in bundled_extensions(IN_WORKERS))]


def _page(pack: Pack, main: Path | None) -> str:
    file = main or Path(ot_tools.__file__).parent / f"{pack.name}.py"
    tree = ast.parse(file.read_bytes())
    about, _, more = (ast.get_docstring(tree) or "").partition("\n\n")
    parts = [f"# {pack.name}", about, *([more] if more else []), "\n".join(_facts(pack, main))]
    parts += [part for tool in pack.tools.values() for part in _tool(tool)]
    if settings := "\n".join(_settings(tree)):
        parts += ["## Settings", f"Under `tools.{pack.name}` in `onetool.yaml`.", settings]
    return "\n\n".join(parts) + "\n"


def _facts(pack: Pack, main: Path | None) -> Iterator[str]:
    if main:
        how = "[in a worker](../../explanation/workers.md) with its own packages, which are installed at its first call"
        yield f"- Runs {how}, or by `onetool prefetch {pack.name}`."
    else:
        yield "- Runs in the server's process."
    for kind, words in (
        ("secrets", "Needs the secret"),
        ("optional_secrets", "Uses the secret, if there is one:"),
        ("programs", "Needs the program"),
    ):
        yield from (f"- {words} `{name}`." for name in pack.needs(kind))


def _tool(tool: Tool) -> Iterator[str]:
    said = docstring_parts(tool)
    yield f"## {tool.full_name}"
    yield f"`{signature_text(tool)}`"
    yield tool.doc.partition("\nArgs:")[0].partition("\nReturns:")[0].strip()
    if tool.destructive:
        yield "What it does cannot be undone, so the user is asked first."
    elif not tool.read_only:
        yield "It changes something, so it is recorded in the ledger."
    if args := said.get("args"):
        rows = (f"| `{name}` | {_cell(text)} |" for name, _, text in (argument.partition(": ") for argument in args))
        yield "| argument | meaning |\n|---|---|\n" + "\n".join(rows)
    if returns := said.get("returns"):
        yield f"Returns: {' '.join(str(returns).split())}"
    if example := said.get("example"):
        yield f"```text\n{example}\n```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _settings(tree: ast.Module) -> Iterator[str]:
    config = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Config"), None)
    rows = list(_fields(config)) if config else []
    if rows:
        yield "| setting | default | meaning |\n|---|---|---|"
        yield from rows


def _fields(config: ast.ClassDef) -> Iterator[str]:
    for node, after in zip(config.body, [*config.body[1:], ast.Pass()], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        default, meaning = _default(node.value), ""
        if isinstance(node.value, ast.Call):
            given = {word.arg: word.value for word in node.value.keywords}
            meaning = str(ast.literal_eval(given["description"])) if "description" in given else ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            meaning = " ".join(str(after.value.value).split())
        if not meaning:
            raise ValueError(f"{config.name}.{node.target.id} has no text below it that says what it means")
        yield f"| `{node.target.id}` | `{default}` | {_cell(meaning)} |"


def _default(value: ast.expr | None) -> str:
    if isinstance(value, ast.Call):
        given = {word.arg: word.value for word in value.keywords}
        value = given.get("default") or (ast.Dict([], []) if "default_factory" in given else None)
    if value is None:
        return ""
    try:
        return f"{_number(value):,}" if isinstance(value, ast.BinOp) else ast.unparse(value)
    except ValueError:
        return ast.unparse(value)


def _number(value: ast.expr) -> int:
    """Return what an expression such as ``10 << 20`` comes to."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.LShift | ast.Mult):
        left, right = _number(value.left), _number(value.right)
        return left << right if isinstance(value.op, ast.LShift) else left * right
    found = ast.literal_eval(value)
    if not isinstance(found, int):
        raise ValueError(found)
    return found


if __name__ == "__main__":
    for name, text in pages().items():
        (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
    BUNDLED_TOOLS.write_text(brief(), encoding="utf-8")
