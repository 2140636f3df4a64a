"""Tolerances: what a program may look like that has one plausible meaning, and what it is read as.

A row is looked at only where one of its words stands in the program, and a reply names the rows that were used.
Whatever is read otherwise than it is written keeps its lines: an error names the line that the model knows.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NoReturn, cast

from ot.errors import CommandTooLong, InvalidSyntax
from ot.registry.tool import Tool
from ot.runtime.fence_processor import strip_fences
from ot.runtime.program import Edit, Program, find_bound_names, normalise_indentation, outside_functions, parse_program

TABLE: Final = {
    "prose": "one fenced block in prose is the program",
    "json": '`{"command": "..."}` is that command, `{"tool": "pack.tool", "arguments": {...}}` that call',
    "run-call": '`run("...")` as the whole program is the program in the text',
    "pack-import": "an import of a pack, or of a tool from one, names what is there already",
    "call-tool": '`call_tool("pack.tool", {...})` is `pack.tool(**{...})`',
    "python-help": '`help(pack.tool)` is `ot.help(query="pack.tool")`, and `dir(pack)` the names of its tools',
    "main-block": 'a last `if __name__ == "__main__":` is no block: its last expression is the value',
    "asyncio-run": "`asyncio.run(main())` is `await main()` beside another `await`, and `main()` without `async def`",
    "bare-coroutine": "`main()` that is an `async def` and is not awaited is `await main()`",
    "missing-import": "a module or class of the standard library is imported where it is used and not defined",
    "json-constant": "`true`, `false` and `null` are `True`, `False` and `None`",
    "dict-argument": "`pack.tool({...})` is `pack.tool(**{...})` if no parameter takes an object",
    "last-assignment": "a variable assigned last is the value if nothing was printed or returned",
    "finished-value": "`await`, `gather`, `create_task` and the like take the value of a call that was made before",
}
"""What is tolerated: each row by the name that replies and statistics give it."""

JAVASCRIPT: Final = re.compile(
    r"(?m)^[ \t]{0,80}(?:(?:const|let|var)[ \t][^=\n]{1,200}="
    r"|(?:async[ \t])?function\b|(?:for|if|while)[ \t]?\(.{0,200}\) \{)"
    r"|===|=>|\bconsole\.log\("
)
JAVASCRIPT_ADVICE: Final = (
    "this is JavaScript, and run() takes Python: x = 1 without const, pack.tool(key=value), for x in xs:, "
    "print(x), True, False, None, and, or, not"
)
MOST_LOOKED_AT: Final = 10_000
"""Characters of a refused text."""


def program_in(code: str, parse: Callable[[str], Program], known: Collection[str]) -> Program:
    """Parse *code*, or the only fenced block in it; *known* names are already defined.

    Raises:
        InvalidSyntax: It neither is nor holds a program.
    """
    try:
        return parse(code)
    except InvalidSyntax as error:
        if (inside := find_fenced(code, parse)) is None:
            error.hint = JAVASCRIPT_ADVICE if JAVASCRIPT.search(code[:MOST_LOOKED_AT]) else ""
            raise
    inner, rows = unwrap(inside, known)
    program = program_in(inner, parse, known)
    return replace(program, tolerated=("prose", *rows, *program.tolerated))


def tolerate(program: Program, packs: Collection[str], *, in_session: bool = False) -> Program:
    """Return *program* as the rows of the table read it that are about its tree.

    *in_session*, functions may be there that an earlier program has defined.
    """
    for row, words, find in REWRITES:
        if row in ("call-tool", "python-help") and in_session:
            continue
        if any(word in program.source for word in words) and (edits := list(find(program, packs))):
            # Never worse than what was written: what can no longer be parsed is left as it was.
            with suppress(InvalidSyntax, CommandTooLong):
                program = replace(program.edit(edits), tolerated=(*program.tolerated, row))
    if prelude := _prelude(program, packs):
        rows = dict.fromkeys("json-constant" if name in CONSTANTS else "missing-import" for name, _ in prelude)
        program = replace(program, prelude=prelude, tolerated=(*program.tolerated, *rows))
    answers = _find_assigned_last(program)
    return replace(program, answers=answers) if answers else program


# ---------------------------------------------------------------- texts that hold a program

COMMANDS: Final = ("command", "code", "program", "python")
TOOLS: Final = ("tool", "name", "tool_name", "function")
ARGUMENTS: Final = ("arguments", "args", "parameters", "params", "input")
CALL: Final = re.compile(r"[A-Za-z]\w{0,99}\.[A-Za-z]\w{0,99}")
LANGUAGES: Final = ("", "python", "python3", "py", "json", "tool_code")


def unwrap(code: str, known: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return the command inside *code* if that is JSON around one, or is given to ``run()``, and the rows used.

    *known* names have a meaning of their own.
    """
    text = code.strip()
    if text.startswith("{") and text.endswith("}"):
        inside, row = _command_in(text), "json"
    elif text.startswith("run(") and text.endswith(")") and "run" not in known:
        inside, row = _read_run_call(text), "run-call"
    else:
        return code, ()
    return (code, ()) if inside is None else (strip_fences(inside), (row,))


def _command_in(text: str) -> str | None:
    try:
        found: dict[str, Any] = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    match list(found.items()):
        case [(key, str(command))] if key in COMMANDS:
            return command
        case [(tool, str(name)), (key, arguments)] if tool in TOOLS and key in ARGUMENTS:
            return _write_call(name, cast("dict[str, Any]", arguments)) if isinstance(arguments, dict) else None
        case _:
            return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _write_call(name: str, arguments: Mapping[str, Any]) -> str | None:
    if name == "run" and list(arguments) == ["command"]:
        return str(arguments["command"])
    if not CALL.fullmatch(name) or not all(key.isidentifier() and not keyword.iskeyword(key) for key in arguments):
        return None
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _read_run_call(text: str) -> str | None:
    try:
        call = parse_program(text).tree.body
    except (InvalidSyntax, CommandTooLong):
        return None
    match call:
        case [ast.Expr(ast.Call(ast.Name("run"), [ast.Constant(str(command))], []))]:
            return command
        case [ast.Expr(ast.Call(ast.Name("run"), [], [ast.keyword("command", ast.Constant(str(command)))]))]:
            return command
        case _:
            return None


def find_fenced(code: str, parse: Callable[[str], Program]) -> str | None:
    """Return the only fenced block in *code*, if there is prose around it and no text of a program might hold it."""
    lines = code.split("\n")
    fences = [number for number, line in enumerate(lines) if line.lstrip().startswith(("```", "~~~"))]
    if len(fences) != 2:
        return None
    first, last = fences
    before, after = "\n".join(lines[:first]).strip(), "\n".join(lines[last + 1 :]).strip()
    language = lines[first].strip().lstrip("`~").strip().lower()
    if language not in LANGUAGES or lines[last].strip().strip("`~") or not (before or after):
        return None
    if '"""' in before or "'''" in before or _is_program(before, parse) or _is_program(after, parse):
        return None
    return "\n".join(lines[first + 1 : last])


def _is_program(text: str, parse: Callable[[str], Program]) -> bool:
    """Whether *text* is more than prose; a single word is not a program."""
    try:
        body = parse(text).tree.body
    except InvalidSyntax:
        return False
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)) for node in body)


# ---------------------------------------------------------------- imports of packs

HOUSES: Final = frozenset({"onetool", "onetool_mcp", "ot", "tools", "packs", "mcp", "mcp_tools"})
"""Modules from which models import packs."""


def _pack_imports(program: Program, packs: Collection[str]) -> Iterator[Edit]:
    for node in program.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) and not _followed(program, node):
            names = _replace_import(node, packs) if isinstance(node, ast.Import) else _from_imported(node, packs)
            if names is not None:
                yield (*program.span(node), "; ".join(filter(None, names)) or "pass")


def _followed(program: Program, node: ast.stmt) -> bool:
    """Whether a statement of several lines has another on its last one, after which no line end may be added."""
    if node.lineno == node.end_lineno:
        return False
    rest = program.source.encode()[program.span(node)[1] :].partition(b"\n")[0].strip()
    return bool(rest) and not rest.startswith(b"#")


def _replace_import(node: ast.Import, packs: Collection[str]) -> list[str] | None:
    """Return the replacement for ``import pack``; None if it imports no pack."""
    ours = [alias for alias in node.names if alias.name in packs and alias.name not in sys.stdlib_module_names]
    if not ours:
        return None
    others = ", ".join(ast.unparse(alias) for alias in node.names if alias not in ours)
    return [f"import {others}" if others else "", *(_assign_name(alias, alias.name) for alias in ours)]


def _from_imported(node: ast.ImportFrom, packs: Collection[str]) -> list[str] | None:
    """Return the replacement for ``from onetool import pack`` or ``from pack import tool``; None for any other."""
    module = (node.module or "").removeprefix("onetool.")
    if node.level or module in sys.stdlib_module_names:
        return None
    if module in HOUSES and all(alias.name in packs or alias.name == "*" for alias in node.names):
        return [_assign_name(alias, alias.name) for alias in node.names]
    if module in packs and all(alias.name != "*" for alias in node.names):
        return [f"{alias.asname or alias.name} = {module}.{alias.name}" for alias in node.names]
    return None


def _assign_name(alias: ast.alias, value: str) -> str:
    return f"{alias.asname} = {value}" if alias.asname and alias.asname != value else ""


# ---------------------------------------------------------------- call_tool()

CALL_TOOL: Final = ("call_tool", "use_tool", "invoke_tool", "execute_tool")
CLIENTS: Final = frozenset({"mcp", "client", "session", "onetool", "tools", "ot"})


def _tool_calls(program: Program, packs: Collection[str]) -> Iterator[Edit]:
    for node in program.nodes:
        if isinstance(node, ast.Call) and _calls_a_tool(node.func, program.binds, packs):
            yield from _direct_call(program, node)


def _calls_a_tool(function: ast.expr, binds: Collection[str], packs: Collection[str]) -> bool:
    match function:
        case ast.Name(name):
            return name in CALL_TOOL and name not in binds
        case ast.Attribute(ast.Name(name), attribute) if attribute in CALL_TOOL:
            return name in CLIENTS and name not in binds and (name == "ot" or name not in packs)
        case _:
            return False


def _direct_call(program: Program, node: ast.Call) -> Iterator[Edit]:
    match node.args, node.keywords:
        case [ast.Constant(str(name))], []:
            given = None
        case ([ast.Constant(str(name)), given], []) | ([ast.Constant(str(name))], [ast.keyword(value=given)]) if (
            len(node.args) == 2 or node.keywords[0].arg in ARGUMENTS
        ):
            pass
        case _:
            return
    if not CALL.fullmatch(name):
        return
    start, end = program.span(node)
    if given is None:
        yield start, end, f"{name}()"
    else:
        first, last = program.span(given)
        yield start, first, f"{name}(**"
        yield last, end, ")"


# ---------------------------------------------------------------- help() and dir()

NAMES_OF: Final = '[_t.partition(".")[2] for _t in ot.tools(pattern="{0}.", info="list") if _t.startswith("{0}.")]'


def _find_help(program: Program, packs: Collection[str]) -> Iterator[Edit]:
    known = {*packs} - program.binds
    for node in program.nodes if "ot" in known else ():
        match node:
            case ast.Call(ast.Name("help") as function, [given], []) if "help" not in program.binds:
                if query := _read_help_query(given, known):
                    yield (*program.span(function), "ot.help")
                    yield (*program.span(given), f"query={query!r}")
            case ast.Call(ast.Name("dir"), [ast.Name(pack)], []) if "dir" not in program.binds and pack in known:
                yield (*program.span(node), NAMES_OF.format(pack))
            case _:
                continue


def _read_help_query(given: ast.expr, packs: Collection[str]) -> str:
    match given:
        case ast.Constant(str(query)):
            return query
        case ast.Name(pack) if pack in packs:
            return pack
        case ast.Attribute(ast.Name(pack), tool) if pack in packs:
            return f"{pack}.{tool}"
        case _:
            return ""


# ---------------------------------------------------------------- ways to start main()
MAIN: Final = "__name__ == '__main__'"


def _main_block(program: Program, packs: Collection[str]) -> Iterator[Edit]:
    block = program.tree.body[-1] if program.tree.body else None
    if not isinstance(block, ast.If) or block.orelse or ast.unparse(block.test) != MAIN:
        return
    start, end = program.span(block)
    body = block.body[0]
    if body.lineno == block.lineno:
        yield start, program.span(body)[0], ""
        return
    first = min(node.lineno for node in (body, *getattr(body, "decorator_list", ())))
    lines = program.source.encode()[:end].decode().split("\n")[first - 1 :]
    yield start, end, "\n" * (first - block.lineno) + normalise_indentation("\n".join(lines))


def _asyncio_runs(program: Program, packs: Collection[str]) -> Iterator[Edit]:
    nodes = list(outside_functions(program.tree.body))
    if any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in nodes):
        instead = "(await "
    elif not any(isinstance(node, ast.AsyncFunctionDef) for node in program.nodes):
        instead = "("  # there is nothing that could be awaited
    else:
        return
    for node in nodes:
        match node:
            case ast.Call(ast.Attribute(ast.Name("asyncio"), "run"), [ast.Call() as given], []):
                start, end = program.span(node)
                first, last = program.span(given)
                yield start, first, instead
                yield last, end, ")"
            case _:
                continue


def _bare_coroutines(program: Program, packs: Collection[str]) -> Iterator[Edit]:
    ours = _own_coroutines(program)
    awaited = _find_handed_on(program)
    for node in outside_functions(program.tree.body):
        found: list[ast.expr] = []
        match node:
            case ast.Expr(call) | ast.Return(ast.Call() as call):
                found = [call]
            case ast.Assign([ast.Name(name)], call) if name not in awaited:
                found = [call]
            case ast.Call(ast.Name("print"), arguments):
                found = arguments
            case _:
                continue
        starts = [program.span(call)[0] for call in found if isinstance(call, ast.Call) and _name(call.func) in ours]
        yield from ((start, start, "await ") for start in starts)


def _own_coroutines(program: Program) -> set[str]:
    """Return the program's own ``async def`` functions whose calls are nothing but coroutines."""
    bound = Counter(name for node in program.nodes for name in find_bound_names(node))
    return {
        node.name
        for node in program.tree.body
        if isinstance(node, ast.AsyncFunctionDef) and bound[node.name] == 1 and not node.decorator_list
        and not any(isinstance(part, ast.Yield) for part in ast.walk(node))
    }  # fmt: skip


def _find_handed_on(program: Program) -> set[str]:
    """Return the variables that are awaited, or given to something that may await them."""
    found = set[str]()
    waiting: list[tuple[ast.AST, bool]] = [(program.tree, False)]
    while waiting:
        node, inside = waiting.pop()
        if inside and isinstance(node, ast.Name):
            found.add(node.id)
        may_await = isinstance(node, ast.Await) or (isinstance(node, ast.Call) and _name(node.func) != "print")
        waiting.extend((child, inside or may_await) for child in ast.iter_child_nodes(node))
    return found


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


REWRITES: tuple[tuple[str, Sequence[str], Callable[[Program, Collection[str]], Iterable[Edit]]], ...] = (
    ("pack-import", ("import",), _pack_imports),
    ("call-tool", CALL_TOOL, _tool_calls),
    ("python-help", ("help(", "dir("), _find_help),
    ("main-block", ("__main__",), _main_block),
    ("asyncio-run", ("asyncio.run(",), _asyncio_runs),
    ("bare-coroutine", ("async def",), _bare_coroutines),
)
"""Rows that are about a program's tree, each with the words without which it has nothing to find."""


# ---------------------------------------------------------------- names that nobody defines


def _import(names: str) -> dict[str, str]:
    return {name: f"import {name}" for name in names.split()}


def _from(module: str, names: str) -> dict[str, str]:
    return {name: f"from {module} import {name}" for name in names.split()}


CONSTANTS: Final = {"true": "True", "false": "False", "null": "None"}
MODULES: Final = {
    **_import("asyncio base64 bisect collections contextlib copy csv dataclasses datetime decimal difflib enum"),
    **_import("fnmatch fractions functools glob hashlib heapq hmac html inspect io itertools json logging math"),
    **_import("operator os pathlib pprint random re secrets shutil statistics string subprocess sys tempfile"),
    **_import("textwrap time traceback typing unicodedata uuid zlib zoneinfo"),
    "concurrent": "import concurrent.futures",
    "urllib": "import urllib.parse",
}
CLASSES: Final = {
    **_from("collections", "Counter OrderedDict defaultdict deque namedtuple"),
    **_from("concurrent.futures", "ThreadPoolExecutor"),
    **_from("dataclasses", "asdict dataclass"),
    **_from("datetime", "timedelta timezone"),
    **_from("decimal", "Decimal"),
    **_from("enum", "Enum"),
    **_from("fractions", "Fraction"),
    **_from("functools", "lru_cache partial reduce"),
    **_from("io", "BytesIO StringIO"),
    **_from("itertools", "chain combinations groupby islice permutations"),
    **_from("pathlib", "Path PurePosixPath"),
    **_from("textwrap", "dedent"),
    **_from("typing", "Any Callable Dict Iterable List Optional Tuple Union"),
    **_from("urllib.parse", "quote_plus urlencode urljoin urlparse"),
}
ONLY_WITH: Final = {
    "copy": {"copy", "deepcopy"},
    "glob": {"glob", "iglob"},
    "html": {"escape", "unescape"},
    "operator": {"add", "attrgetter", "itemgetter", "methodcaller", "mul", "sub"},
    "secrets": {"choice", "randbelow", "token_bytes", "token_hex", "token_urlsafe"},
    "string": {"Template", "ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "punctuation"},
}
"""Modules whose names are also those of variables: what must be used of them."""
OF_DATETIME: Final = {"MAXYEAR", "MINYEAR", "UTC", "date", "datetime", "time", "timedelta", "timezone", "tzinfo"}
"""What the module has; with anything else the class of the same name is meant."""
IMPLIED: Final = MODULES.keys() | CLASSES.keys() | CONSTANTS.keys()


def _prelude(program: Program, packs: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the names that are used and defined nowhere, each with the statement that defines it."""
    names = (program.loads & IMPLIED) - program.binds
    if not names:
        return ()
    found = ((name, _definition(program, name)) for name in sorted(names) if name not in packs)
    return tuple((name, statement) for name, statement in found if statement)


def _definition(program: Program, name: str) -> str:
    if value := CONSTANTS.get(name):
        return f"{name} = {value}"
    if statement := CLASSES.get(name):
        return statement
    held = [node for node in program.nodes if isinstance(node, ast.Attribute) and _name(node.value) == name]
    used = {node.attr for node in held}
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in program.nodes)
    if name == "datetime" and (not used <= OF_DATETIME or uses > len(held)):
        return "from datetime import datetime"
    # A module name used for anything but its members is a forgotten variable.
    is_module = uses == len(held) and used <= ONLY_WITH.get(name, used)
    return MODULES[name] if is_module else ""


# ---------------------------------------------------------------- what a program answers, and what it gives to tools


def _find_assigned_last(program: Program) -> tuple[str, ...]:
    """Return the variables that the last statement assigns, if they are the program's answer."""
    match program.tree.body[-1:]:
        case [ast.Assign([target, *_], value)] if not isinstance(value, ast.Lambda):
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
        case [ast.AugAssign(target)] | [ast.AnnAssign(target=target, value=ast.expr())]:
            targets = [target]
        case _:
            return ()
    names = tuple(map(_name, targets))
    return () if any(not name or name.startswith("__") for name in names) else names


PLAIN: Final = frozenset({
    "str", "int", "float", "bool", "bytes", "None", "list", "List", "tuple", "Tuple", "set", "Set", "frozenset",
    "Sequence", "Iterable", "Literal", "date", "datetime", "time", "timedelta", "Decimal", "Path",
})  # fmt: skip
"""Types of parameters that are never an object."""


def arguments_in_dict(tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that a dict names which is the only one, if no parameter can take it as it is."""
    if kwargs or len(args) != 1 or type(args[0]) is not dict:
        return None
    given = cast("dict[str, Any]", args[0])
    fits = given and given.keys() <= {parameter.name for parameter in tool.parameters}
    if not fits or any(p.kind in ("args", "kwargs") or _takes_object(p.annotation) for p in tool.parameters):
        return None
    return given


def _takes_object(annotation: str) -> bool:
    """Whether a parameter of this type may take a dict; one that nobody knows may."""
    try:
        return _is_object(ast.parse(annotation, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return True


def _is_object(node: ast.expr) -> bool:
    match node:
        case ast.Constant(None):
            return False
        case ast.Name(name) | ast.Attribute(attr=name) | ast.Subscript(ast.Name(name)) if name in PLAIN:
            return False
        case ast.BinOp(left, ast.BitOr(), right):
            return _is_object(left) or _is_object(right)
        case ast.Subscript(ast.Name("Optional" | "Union"), ast.Tuple(parts)):
            return any(map(_is_object, parts))
        case ast.Subscript(ast.Name("Optional"), part):
            return _is_object(part)
        case _:
            return True
