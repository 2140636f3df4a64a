"""The clients' own programs, from npm: installed once, pinned, and asked which servers they have."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from real_servers.catalogues import cache, done, locked_directory

LIST_SECONDS = 60.0


@dataclass(frozen=True)
class ClientProgram:
    """A published client: its package, where its program is once it is installed, and what it is asked with."""

    client: str
    package: str
    version: str
    program: str
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def place(self) -> Path:
        """Where it is installed, by its version."""
        return cache() / "clients" / f"{self.client}_{self.version.replace('.', '_')}"

    async def install(self) -> None:
        """Install it unless it is."""
        async with locked_directory(self.place) as is_complete:
            if not is_complete:
                # No package's own scripts; the programs themselves come as packages for each platform.
                flags = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", *self.flags]
                await done("npm", "install", *flags, "--prefix", str(self.place), f"{self.package}@{self.version}")

    async def listed(self, home: Path) -> str:
        """Return what the client says about its servers, in a *home* of its own."""
        (program,) = (self.place / "node_modules").glob(self.program)
        kept = {name: os.environ[name] for name in ("PATH", "XDG_RUNTIME_DIR")}
        environment = {**kept, "HOME": str(home), "NO_COLOR": "1", **self.env}
        process = await asyncio.create_subprocess_exec(
            *([str(program)] if program.suffix != ".js" else ["node", str(program)]),
            "mcp",
            "list",
            cwd=home,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(LIST_SECONDS):
            words, _ = await process.communicate()
        assert process.returncode == 0, words.decode(errors="replace")
        return words.decode()


PROGRAMS = (
    ClientProgram(
        "claude-code",
        "@anthropic-ai/claude-code",
        "2.1.197",
        "@anthropic-ai/claude-code-*-*/claude",
        env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    ),
    ClientProgram("codex", "@openai/codex", "0.166.0", "@openai/codex/bin/codex.js"),
    ClientProgram(
        "gemini-cli",
        "@google/gemini-cli",
        "0.61.0",
        "@google/gemini-cli/bundle/gemini.js",
        flags=("--omit=optional",),
        # It starts no server in a directory that its user has not trusted.
        env={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
)
