"""Which modules write something that a later process may read, found by what they call."""

from __future__ import annotations

import ast

from checkout import SOURCES, python_files

FUNCTIONS = frozenset(
    {"write_private", "write_new", "write_json", "replacing", "write_text", "write_bytes", "keep_backup"}
    | {"LogFile", "create_file", "write_all", "set_password", "step", "step_durably"}
)
STATE = frozenset({"set", "add", "send", "count"})
"""What puts a value into the shared state."""
MODES = ("w", "x", "a")
LIBRARIES = frozenset({"sqlite3", "obstore", "redis", "docket", "limits"})
"""Whoever imports one of these keeps something."""


def writing_modules() -> set[str]:
    """Return the modules of the source that may write a stored format, by their path."""
    files = {name: file for name, file in python_files(SOURCES).items() if "jail" not in file.parts}
    return {name for name, file in files.items() if _writes(ast.parse(file.read_text("utf-8")))}


def _writes(tree: ast.Module) -> bool:
    return any(_is_import(node) or (isinstance(node, ast.Call) and _is_write(node)) for node in ast.walk(tree))


def _is_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(name.name.partition(".")[0] in LIBRARIES for name in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARIES


def _is_write(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in FUNCTIONS or (name in STATE and _is_state(call.func)):
        return True
    words = {getattr(node, "attr", getattr(node, "id", "")) for given in call.args for node in ast.walk(given)}
    return name == "open" and ("O_CREAT" in words or _mode(call).startswith(MODES))


def _is_state(function: ast.expr) -> bool:
    of = function.value if isinstance(function, ast.Attribute) else function
    return getattr(of, "attr", getattr(of, "id", "")) in ("state", "_state")


def _mode(call: ast.Call) -> str:
    """Return the mode that a file is opened with, as far as it is written there."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [node.value for node in given if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return next((text for text in texts if len(text) <= 3), "")
