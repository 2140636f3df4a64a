"""A small tree of files, and what CPython makes of programs in it: run as a script it answers programs from stdin."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

NOW = 1_767_323_045
CHANGING = (".zip", ".gz")
"""Files that hold the time at which they were made."""
NOTHING = "OK: the program ran and returned no value"


def make_tree(top: Path) -> None:
    """Put the files of the programs into *top*, and take out all else."""
    for left in [*top.iterdir()]:
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    (top / "src" / "lib").mkdir(parents=True)
    texts = {
        "notes.txt": "buy milk\ncall Ada\nbuy bread\n",
        "crlf.txt": "one\r\ntwo\r\n",
        "config.json": '{"host": "localhost", "port": 8000}',
        "sales.csv": "item,amount\npen,3\nbook,12\n",
        "project.toml": '[project]\nname = "demo"\n',
        "setup.ini": "[main]\nkey = value\n",
        "src/app.py": "import lib\n\n\ndef main():\n    pass\n",
        "src/lib/tools.py": "def helper():\n    return 1\n",
        "src/readme.md": "# Demo\n",
    }
    for name, text in texts.items():
        (top / name).write_bytes(text.encode())
    (top / "data.bin").write_bytes(bytes(range(256)) * 4)
    for path in top.rglob("*"):
        os.utime(path, (NOW, NOW))


def snapshot(top: Path) -> dict[str, str]:
    """Return what *top* holds."""
    found = {str(path.relative_to(top)): path for path in sorted(top.rglob("*"))}
    return {
        name: "directory" if path.is_dir() else "" if path.suffix in CHANGING else path.read_bytes().hex()
        for name, path in found.items()
    }


def shown(value: Any) -> str:
    """Return a value as a reply shows it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def answer(source: str, top: Path) -> dict[str, Any]:
    """Return what CPython makes of a program: its texts or its error, and the files that are there then."""
    make_tree(top)
    os.chdir(top)
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    texts, error = [NOTHING], ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "<program>", "exec"), names)
            if isinstance(last, ast.Expr):
                texts = [shown(eval(compile(ast.Expression(last.value), "<program>", "eval"), names))]
    except Exception as failure:  # noqa: BLE001 - the program's own
        error = type(failure).__name__
    names.clear()
    if printed.getvalue():
        texts = [printed.getvalue(), *(text for text in texts if text not in (NOTHING, shown(None)))]
    return {"texts": texts, "error": error, "tree": snapshot(top)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        answers = [answer(source, Path(directory)) for source in json.loads(sys.stdin.read())]
        os.chdir("/")
    sys.stdout.write(json.dumps(answers))
