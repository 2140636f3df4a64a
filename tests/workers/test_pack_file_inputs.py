"""The group pack_files of bad_inputs.yaml: a bad pack is told, harms no other, and is never imported in the server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bad_inputs.bad_inputs_corpus import Item, each_item, payload
from mcp_wire import strict_json
from ot.workspace import Workspace
from run_app import paths_in, value_of
from workers.door import source_of
from workers.watched_workers import write_pack

pytestmark = pytest.mark.anyio

USABLE = {"pack_files-21": "f", "pack_files-22": "f", "pack_files-23": "f"}
"""Files that are packs after all: their functions are odd, and can be called."""
AT_CALL = {"pack_files-20": "requires-python", "pack_files-19": "agreed"}
"""What only shows when the environment is made."""


def write_item(file: Path, item: Item) -> None:
    """Write the entry as *file*, or make what it says instead of a file."""
    kind = str(item.get("fs", ""))
    if kind.startswith("symlink"):
        file.symlink_to("/etc/shadow")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind.startswith("directory"):
        file.mkdir()
    elif kind.startswith("world-writable"):
        file.write_text("def f(): return 1\n")
        file.chmod(0o666)
        if os.getuid() == 0:
            os.chown(file, 65534, 65534)
    else:
        found = payload(item)
        file.write_bytes(found if isinstance(found, bytes) else found.encode())


@each_item("pack_files")
async def test_a_bad_pack_is_told_and_harms_no_other(tmp_path: Path, item: Item) -> None:
    paths = paths_in(tmp_path, {})
    write_pack(paths.global_dir, "calm", source_of("calm"))
    (paths.global_dir / "tools" / "x").mkdir()
    write_item(paths.global_dir / "tools" / "x" / "x_tools.py", item)
    before = set(sys.modules)
    app = Workspace.alone(paths)
    try:
        assert "fine" == value_of(await app.run("calm.echo(nonce='fine')"))
        listed = strict_json(value_of(await app.run("__format__ = 'json'\not.packs(pattern='x')")))
        await check(app, item, next(entry for entry in listed if entry["name"] == "x"))
        assert "fine" == value_of(await app.run("calm.echo(nonce='fine')"))
        assert not [name for name in set(sys.modules) - before if name in ("x", "x_tools")]
    finally:
        await app.aclose()


async def check(app: Workspace, item: Item, listed: dict[str, object]) -> None:
    """See that the pack is broken for a reason, or can be called after all."""
    health = value_of(await app.run("ot.health()"))
    if item["id"] in USABLE:
        assert "broken" not in listed
        assert 1 == listed["tool_count"]
        await app.run(f"x.{USABLE[item['id']]}()")
    else:
        assert listed.get("broken"), listed
        assert "degraded" in health and "x" in health
        reply = await app.run("x.f()")
        assert reply.is_error


async def test_a_package_from_anywhere_but_the_index_is_not_fetched_without_consent(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {})
    header = '# /// script\n# dependencies = ["x @ https://127.0.0.1:9/x.whl"]\n# ///\n'
    write_pack(paths.global_dir, "x", header + "def f(): return 1\n")
    app = Workspace.alone(paths)
    try:
        reply = await app.run("x.f()")
        assert reply.is_error and "which is not allowed" in reply.texts[-1]
        assert not list((paths.global_dir / "packs").rglob("*.lock"))
    finally:
        await app.aclose()
