"""What ot_sdk promises to interpreters that the server does not choose."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from worker_client import PACKS, WorkerClient

import ot_sdk
from pace import PATIENCE

SOURCES = sorted(Path(ot_sdk.__file__).parent.glob("*.py"))
OLDEST = (3, 10)


def imported(tree: ast.Module) -> set[str]:
    """Return the top-level names of everything that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_file_imports_only_the_standard_library(source: Path) -> None:
    foreign = imported(ast.parse(source.read_text(encoding="utf-8"))) - sys.stdlib_module_names - {"ot_sdk"}
    assert set() == foreign


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_file_is_written_in_the_oldest_python_that_a_worker_may_have(source: Path) -> None:
    ast.parse(source.read_text(encoding="utf-8"), feature_version=OLDEST)


def other_pythons() -> list[str]:
    """Return the interpreters beside the one of the tests that are installed here and work."""
    found = [shutil.which(f"python3.{minor}") for minor in (10, 11, 13, 14)]
    return [path for path in found if path and _works(path)]


def _works(path: str) -> bool:
    done = subprocess.run([path, "-I", "-c", "import sys; print(sys.version_info >= (3, 10))"], capture_output=True)
    return done.stdout.strip() == b"True"


@pytest.mark.parametrize("python", other_pythons() or [sys.executable])
def test_a_worker_runs_on_other_pythons_too(python: str) -> None:
    worker = WorkerClient(python)
    try:
        worker.init(PACKS / "mixed_tools.py")
        worker.on_call_tool = lambda params: params["arguments"]
        value = {"a": (1, b"x"), 2: {"s"}}
        assert [value] * 3 == [worker.call(tool, value=value) for tool in ("echo", "aecho", "wrapped")]
        assert {"x": 1} == worker.call("ask", tool="a.b", arguments={"x": 1})
        pending = worker.begin("forever")
        worker.wait_for_note("print")
        worker.cancel(pending)
        assert "Cancelled" == pending.replies.get(timeout=PATIENCE)["error"]["data"]["kind"]
        assert 0 == worker.end()
        assert "" == worker.error_text()
    finally:
        worker.close()


def loaded_anyway() -> set[str]:
    """Return what the interpreter of the tests loads by itself, for its environment."""
    command = [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_worker_without_async_tools_does_not_load_asyncio(tmp_path: Path) -> None:
    file = tmp_path / "small_tools.py"
    file.write_text("import sys\ndef loaded(): return sorted(sys.modules)")
    worker = WorkerClient()
    try:
        worker.init(file)
        costly = {"asyncio", "ctypes", "dataclasses", "inspect", "logging", "pathlib", "socket", "traceback"}
        assert set() == costly & set(worker.call("loaded")) - loaded_anyway()
    finally:
        worker.close()
