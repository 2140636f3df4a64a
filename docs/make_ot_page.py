"""Writes the outputs on docs/reference/ot-pack.md anew by running its commands; a test fails when it is behind."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from ot.config.paths import Paths
from ot.workspace import Workspace

PAGE = Path(__file__).parent / "reference" / "ot-pack.md"
CONFIG = re.compile(r'^```yaml title="[^"]*"\n(.*?)^```', re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ onetool run '(.*)'$", re.MULTILINE)


async def made(page: str) -> str:
    """Return *page* with what its commands give now, under the configuration that it shows."""
    with tempfile.TemporaryDirectory() as place:
        app = Workspace.alone(_paths(Path(place), CONFIG.findall(page)[0]))
        try:
            outputs = {code: "\n".join((await app.run(code)).texts) for code in COMMAND.findall(page)}
        finally:
            await app.aclose()

    def block(found: re.Match[str]) -> str:
        commands = COMMAND.findall(found[1])
        return "```console\n" + "".join(f"$ onetool run '{code}'\n{outputs[code]}\n" for code in commands) + "```"

    return BLOCK.sub(block, page)


def _paths(place: Path, config: str) -> Paths:
    work, user = place / "work", place / "user"
    work.mkdir()
    user.mkdir()
    (user / "onetool.yaml").write_text(config, encoding="utf-8")
    return Paths.of(work, user)


if __name__ == "__main__":
    PAGE.write_text(asyncio.run(made(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
