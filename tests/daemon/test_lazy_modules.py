"""A shared server has imported its own version of everything before another one is installed."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import ot
from ot.daemon.serving import LAZY

SOURCE = Path(ot.__file__).parent
ELSEWHERE = {"cli", "daemon", "entry.py", "relay", "state", "team", "jail"}
"""Rooms whose imports a shared server does not meet: above it, for replicas, or run from disk in another process."""
FOR_REPLICAS = {
    "ot.ledger.redis_ledger",
    "ot.ledger.redis_place",
    "ot.output.result_objects",
    "ot.server.replica_runs",
    "ot.servers.auth.shared_token_store",
    "ot.state.redis_state",
    "ot.state.revisions",
}


def _imported_in_functions(file: Path) -> set[str]:
    functions = (
        node
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    inside = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.ImportFrom))
    return {node.module for node in inside if node.module and node.module.startswith("ot.")}


def test_every_module_that_a_server_imports_late_is_known() -> None:
    files = [file for file in SOURCE.rglob("*.py") if ELSEWHERE.isdisjoint(file.relative_to(SOURCE).parts)]
    late = set[str]().union(*map(_imported_in_functions, files))
    assert late - FOR_REPLICAS == set(LAZY)


def test_all_of_them_can_be_imported() -> None:
    assert [import_module(name).__name__ for name in LAZY] == list(LAZY)
