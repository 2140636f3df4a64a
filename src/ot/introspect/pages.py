"""Pages of help: one tool, one pack, one alias, as text to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ot.introspect.docs_url import docs_url
from ot.introspect.listing import docstring_parts, instructions_of, sorted_tools
from ot.registry.signature import signature_text
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry

VALUES = {"int": "1", "float": "1.0", "bool": "True", "list": "[]", "dict": "{}"}
"""What stands for a value in an example, by the type's name; anything else is text."""

SIGNATURE = 160
"""Characters of a compact signature, roughly."""


@dataclass(frozen=True)
class Pages:
    """Writes pages: with these *instructions* of packs, and addresses made of *docs*."""

    instructions: Mapping[str, str]
    docs: str

    def tool(self, tool: Tool, pack: Pack, info: str = "min") -> str:
        """Return everything that a caller of *tool*, which is of *pack*, needs; "full" adds all that is known."""
        parts = docstring_parts(tool)
        # A proxied tool's text is shown whole: it is not made of parts that are shown below.
        told = tool.description if tool.source == "local" else tool.doc
        text = f"# {tool.full_name}\n{told}\n\n{signature_text(tool)}\n"
        if tool.parameters:
            said = dict(line.partition(": ")[::2] for line in parts.get("args", ()))
            text += "\nArgs:\n" + "".join(f"  {_argument(known, said)}\n" for known in tool.parameters)
        text += _returns(tool, parts.get("returns", ""))
        example = parts.get("example") or example_call(tool)
        text += f"\nExample:\n  {example.replace(chr(10), chr(10) + '  ')}\n"
        return text + (_everything(tool) if info == "full" else "") + self._docs(pack)

    def pack(self, pack: Pack, info: str = "min") -> str:
        """Return how to use *pack*, and its tools; "full" adds their signatures."""
        if pack.pending:
            return f"# {pack.name}\nWhat this pack offers is not known yet: {pack.broken}"
        if pack.broken:
            return f"# {pack.name}\nThis pack cannot be used: {pack.broken}"
        said = instructions_of(pack, self.instructions)
        lines = [f"# {pack.name}", *([said, ""] if said else []), "Tools:"]
        for tool in sorted_tools(pack):
            name = compact_signature(tool) if info == "full" else ""
            lines.append(f"- {tool.full_name}{name}" + (f": {tool.description}" if tool.description else ""))
        return "\n".join(lines) + "\n" + self._docs(pack)

    def alias(self, name: str, target: str, registry: ToolRegistry) -> str:
        """Return what *name* stands for."""
        pack, _, function = target.partition(".")
        known = pack in registry.packs and not registry.pack(pack).broken
        tool = registry.pack(pack).tools.get(function) if known else None
        text = f"# {name}\nAlias of {target}\n"
        if tool is None:
            return f"{text}\nThere is no tool {target}: the alias cannot be used."
        call = example_call(tool).removeprefix(target)
        return f"{text}{tool.description}\n\nUse: {name}{call} means {target}{call}\nMore: ot.help(query='{target}')"

    def _docs(self, pack: Pack) -> str:
        address = docs_url(self.docs, pack)
        return f"\nDocs: {address}" if address else ""


def compact_signature(tool: Tool) -> str:
    """Return ``(query: str, limit: int = 10, ...) -> list``: what must be given, and some of the rest."""
    shown: list[str] = []
    for parameter in sorted(tool.parameters, key=lambda parameter: not parameter.required):
        if not parameter.required and len(", ".join(shown)) > SIGNATURE:
            shown.append("...")
            break
        shown.append(_parameter(parameter))
    return f"({', '.join(shown)})" + (f" -> {tool.returns or tool.observed}" if tool.returns or tool.observed else "")


def _parameter(parameter: Parameter) -> str:
    mark = {"args": "*", "kwargs": "**"}.get(parameter.kind, "")
    # In double quotes, so that YAML's single ones need no escapes around them.
    quoted = (parameter.default or "").replace("'", '"') if '"' not in (parameter.default or "") else parameter.default
    default = f" = {quoted}" if parameter.default is not None else ""
    return f"{mark}{parameter.name}" + (f": {parameter.annotation}" if parameter.annotation else "") + default


def example_call(tool: Tool) -> str:
    """Return a call of *tool* that gives what must be given."""
    given = [f"{known.name}={VALUES.get(known.annotation, repr('...'))}" for known in tool.parameters if known.required]
    return f"{tool.full_name}({', '.join(given)})"


def _argument(parameter: Parameter, said: Mapping[str, str]) -> str:
    default = "" if parameter.default is None else f" = {parameter.default}"
    kind = f"{parameter.annotation}{default}".strip()
    text = said.get(parameter.name, "")
    return f"{parameter.name}" + (f" ({kind})" if kind else "") + (f": {text}" if text else "")


def _returns(tool: Tool, said: str) -> str:
    # What is said of a proxied tool's value may be its type already.
    kind = "" if tool.returns and said.startswith(tool.returns) else tool.returns
    if not kind and not said:
        return ""
    return f"\nReturns{f' ({kind})' if kind else ''}" + (f": {said}" if said else "") + "\n"


def _everything(tool: Tool) -> str:
    head, _, rest = tool.doc.strip().partition("\n\n")
    prose = rest.partition("Args:\n")[0].strip() if rest else ""
    known = {"read-only": tool.read_only, "destructive": tool.destructive or None}
    facts = [f"{word}: {'yes' if value else 'no'}" for word, value in known.items() if value is not None]
    facts += [f"time limit: {tool.timeout:g} s"] if tool.timeout else []
    lines = [f"Source: {tool.source}", *facts]
    return (f"\nNotes:\n{prose}\n" if prose and head else "") + "\n" + "\n".join(lines) + "\n"
