"""Programs that call published servers are replayed where no server is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from ot.runtime.cassettes.recording import Recording
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from real_servers.real_house import real
from run_app import running_app
from runtime.cassettes.taped import replay

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]  # the first time on a machine, the servers are installed

PROGRAMS = {
    "an echo and a sum": "[everything.echo(message='hi'), everything.get_sum(a=2, b=3)]",
    "an image": "everything.get_tiny_image()",
    "structured content": "everything.get_structured_content(location='Chicago')['conditions']",
    "files, in parallel": (
        "import asyncio\n"
        "filesystem.write_file(path='{place}/a.txt', content='one')\n"
        "found = await asyncio.gather(*[filesystem.read_text_file(path='{place}/a.txt') for i in range(3)])\nfound"
    ),
    "an error": (
        "try:\n    filesystem.read_text_file(path='/etc/passwd')\n"
        "except Exception as error:\n    said = str(error)\nsaid"
    ),
    "a graph": (
        "memory.create_entities(entities=[{{'name': 'a', 'entityType': 'b', 'observations': ['c']}}])\n"
        "memory.read_graph()"
    ),
}


@pytest.fixture(params=["exact", "portable"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """One of each engine."""
    if request.param == "exact" and (missing := ExactEngine.missing_here()):
        pytest.skip(missing)
    return ExactEngine(ready=1) if request.param == "exact" else PortableEngine()


async def test_programs_of_npm_servers_are_replayed_without_them(engine: Engine, tmp_path: Path) -> None:
    there, place = tmp_path / "there", tmp_path / "there" / "work"  # where the servers may write
    place.mkdir(parents=True)
    names = ("everything", "filesystem", "memory")
    servers: Mapping[str, Any] = {name: await anyio.to_thread.run_sync(real, name, place) for name in names}
    recorded: dict[str, tuple[Any, ...]] = {}
    commands = {name: text.format(place=place) for name, text in PROGRAMS.items()}
    async with running_app(there, None, {"servers": servers, "policy": {"allow": ["*"]}}, engine=engine) as app:
        for number, (name, command) in enumerate(commands.items()):
            tape = Recording(app.picture.loaded.secrets.redact, tmp_path / f"{number}.yaml")
            reply = await app.run(command, tape=tape)
            assert (reply.is_error, tape.finish()) == (False, []), (name, reply.text)
            recorded[name] = reply.texts, reply.value, reply.blocks
    for number, (name, command) in enumerate(commands.items()):
        # By the portable engine, whichever has recorded it.
        reply, replayed = await replay(tmp_path / "here", command, tmp_path / f"{number}.yaml")
        assert (reply.texts, reply.value, reply.blocks) == recorded[name]
        assert replayed.list_differences() == []
