"""Servers behind the launchers that people use, and the files with which a directory would make each run its code."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYTHON_SERVER = """
import asyncio, json, os, sys

def answer(message):
    if message["method"] == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "tiny", "version": "1"}}
    if message["method"] == "tools/list":
        return {"tools": [{"name": "where", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    if message["method"] == "tools/call":
        return {"content": [{"type": "text", "text": os.getcwd()}]}

def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message)
            told = {"result": result} if result else {"error": {"code": -32601, "message": "unknown"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)

if __name__ == "__main__":
    main()
"""
NODE_SERVER = """#!/usr/bin/env node
const tools = [{name: "where", inputSchema: {type: "object"}, annotations: {readOnlyHint: true}}];
const answers = {
  "initialize": m => ({protocolVersion: m.params.protocolVersion, capabilities: {tools: {}},
                       serverInfo: {name: "tiny", version: "1"}}),
  "tools/list": () => ({tools}),
  "tools/call": () => ({content: [{type: "text", text: process.cwd()}]}),
};
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const told = answers[m.method] ? {result: answers[m.method](m)} : {error: {code: -32601, message: "unknown"}};
  console.log(JSON.stringify({jsonrpc: "2.0", id: m.id, ...told}));
});
"""


@dataclass(frozen=True)
class Launched:
    """A server's settings, what in its working directory would make it touch the file *mark*, and whether it starts."""

    settings: Mapping[str, Any]
    traps: Mapping[str, str]
    mark: Path
    starts: bool = True


def launched(place: Path) -> dict[str, Launched]:
    """Build the servers below *place*, and return them by name."""
    shelf = place / "shelf"
    shelf.mkdir()
    (shelf / "tiny_server.py").write_text(PYTHON_SERVER)
    marks = {name: place / f"{name}-was-here" for name in ("npx", "uvx", "uv", "module", "node", "shell")}
    python = str(shelf / "tiny_server.py")
    (shelf / "server.sh").write_text(f"git status >&2\nexec {sys.executable} {python}\n")
    wheel = _wheel(shelf)
    uv = Path(sys.executable).parent
    offline = ["--offline", "--python", sys.executable]
    modules = {"PYTHONPATH": str(shelf)}
    return {
        "npx": Launched(
            {"command": "npx", "args": ["-y", "--package", str(_npm_package(shelf)), "tiny-server"]},
            {
                ".npmrc": "script-shell=/usr/bin/node\nnode-options=--require ./evil.js\n",
                "evil.js": f"require('fs').writeFileSync({str(marks['npx'])!r}, '')",
                "package.json": "{}",
            },
            marks["npx"],
        ),
        "uvx": Launched(
            {"command": str(uv / "uvx"), "args": [*offline, "--from", str(wheel), "python", "-m", "tiny_server"]},
            {"asyncio.py": _touch(marks["uvx"], marks["module"])},
            marks["uvx"],
        ),
        "uv": Launched(
            {"command": str(uv / "uv"), "args": ["run", *offline, "--with", str(wheel), "tiny-server"]},
            {
                "pyproject.toml": '[project]\nname="evil"\nversion="0"\n'
                '[build-system]\nrequires=[]\nbuild-backend="evil_backend"\nbackend-path=["."]\n',
                "evil_backend.py": _touch(marks["uv"]),
            },
            marks["uv"],
        ),
        "module": Launched(
            {"command": sys.executable, "args": ["-m", "tiny_server"], "env": modules},
            {"asyncio.py": _touch(marks["uvx"], marks["module"])},
            marks["module"],
        ),
        "node": Launched(
            {"command": "node", "args": ["server.js"]},
            {"server.js": f"require('fs').writeFileSync({str(marks['node'])!r}, '')"},
            marks["node"],
            starts=False,
        ),
        "shell": Launched(
            {"command": "sh", "args": [str(shelf / "server.sh")]},
            {
                "HEAD": "ref: refs/heads/main\n",
                "objects/x": "",
                "refs/x": "",
                "config": "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\n"
                f'fsmonitor = "touch {marks["shell"]};"\n',
            },
            marks["shell"],
        ),
    }


def _touch(*marks: Path) -> str:
    return "".join(f"open({str(mark)!r}, 'w').close()\n" for mark in marks)


def _npm_package(shelf: Path) -> Path:
    package = shelf / "package"
    package.mkdir()
    (package / "package.json").write_text(
        json.dumps({"name": "tiny-server", "version": "1.0.0", "bin": {"tiny-server": "server.js"}})
    )
    (package / "server.js").write_text(NODE_SERVER)
    (package / "server.js").chmod(0o755)
    program = shutil.which("tar")
    assert program
    subprocess.run([program, "-czf", "tiny.tgz", "package"], cwd=shelf, check=True, timeout=20)
    return shelf / "tiny.tgz"


def _wheel(shelf: Path) -> Path:
    wheel, info = shelf / "tiny_server-1.0-py3-none-any.whl", "tiny_server-1.0.dist-info"
    files = {
        "tiny_server.py": PYTHON_SERVER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntiny-server = tiny_server:main\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        sums = (f"{name},sha256={_sum(text)},{len(text)}\n" for name, text in files.items())
        archive.writestr(f"{info}/RECORD", "".join([*sums, f"{info}/RECORD,,\n"]))
    return wheel


def _sum(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
