"""The clients' own programs, from npm: installed once, pinned, and set up for a model on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from real_servers.catalogues import cache, done, locked_directory

KEY = "sk-none-01234567890123456789"
"""What the clients believe to be a key; the model asks for none."""
MODEL = "gpt-5"
MARK = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
ENTER, DOWN, RIGHT = "\r", "\x1b[B", "\x1b[C"


@dataclass(frozen=True)
class ClientProgram:
    """A published client: its package, its program, and how it is set up and started."""

    client: str
    title: str
    package: str
    version: str
    program: str
    """Where the program is once the package is installed."""
    settings: str
    """The client's own file, below the home."""
    set_up: Callable[[Path, Path, str], None]
    """Writes the rest of that file, given the project and the model's address."""
    prompt: tuple[str, ...]
    """The arguments before a task that is done without a terminal."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """``{model}`` is the model's address."""
    flags: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """The arguments after a task, at a terminal or not."""
    allow: tuple[tuple[str, str], ...] = ()
    """What a person waits for and presses to allow a call in the client's own dialogue, where it has one."""
    deny: tuple[tuple[str, str], ...] = ()
    is_known: bool = True
    """Whether ``onetool connect`` knows it."""

    @property
    def place(self) -> Path:
        """Where it is installed, by its version."""
        return cache() / "clients" / f"{self.client}_{self.version.replace('.', '_')}"

    @property
    def command(self) -> list[str]:
        """The command line that starts the program."""
        # Of two builds, that for older processors has the longer name.
        found = max((self.place / "node_modules").glob(self.program))
        return ["node", str(found)] if found.suffix == ".js" else [str(found)]

    async def install(self) -> None:
        """Install it unless it is."""
        async with locked_directory(self.place) as is_complete:
            if not is_complete:
                # No package's own scripts; the programs themselves come as packages for each platform.
                flags = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", *self.flags]
                await done("npm", "install", *flags, "--prefix", str(self.place), f"{self.package}@{self.version}")


def _set_up_claude(file: Path, project: Path, model: str) -> None:
    _merge(
        file,
        hasCompletedOnboarding=True,
        theme="dark",
        customApiKeyResponses={"approved": [KEY[-20:]], "rejected": []},
        projects={str(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    )


def _set_up_codex(file: Path, project: Path, model: str) -> None:
    before = {"model": MODEL, "model_provider": "loopback"}
    # Its first turn does not wait for a server that is not required, without a person it calls only tools that are
    # approved beforehand, and it keeps most of its environment from servers.
    entry = {"required": True, "default_tools_approval_mode": "approve", "env_vars": ["XDG_RUNTIME_DIR"]}
    provider = {"name": "loopback", "base_url": f"{model}/v1", "env_key": "MODEL_KEY", "wire_api": "responses"}
    sections = {"model_providers.loopback": provider, f'projects."{project}"': {"trust_level": "trusted"}}
    more = "".join(f"\n[{name}]\n{_toml(values)}" for name, values in sections.items())
    file.write_text(f"check_for_update_on_startup = false\n{_toml(before)}{file.read_text()}{_toml(entry)}{more}")


def _set_up_gemini(file: Path, project: Path, model: str) -> None:
    _merge(file, security={"auth": {"selectedType": "gemini-api-key"}}, privacy={"usageStatisticsEnabled": False})


def _set_up_opencode(file: Path, project: Path, model: str) -> None:
    seen = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    options = {"baseURL": f"{model}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {MODEL: seen}}
    _merge(file, model=f"loopback/{MODEL}", provider={"loopback": provider}, autoupdate=False, share="disabled")


def _merge(file: Path, **more: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | more, indent=2))


def _toml(values: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


PROGRAMS = {
    program.client: program
    for program in (
        ClientProgram(
            "claude-code",
            "Claude Code",
            "@anthropic-ai/claude-code",
            "2.1.326",
            "@anthropic-ai/claude-code-*-*/claude",
            ".claude.json",
            _set_up_claude,
            ("-p",),
            {
                "ANTHROPIC_BASE_URL": "{model}",
                "ANTHROPIC_API_KEY": KEY,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "MCP_CONNECTION_NONBLOCKING": "0",
                "ENABLE_TOOL_SEARCH": "false",
            },
            options=("--allowedTools", "mcp__onetool__run"),
            allow=(("not set", RIGHT), ("Do not allow", ENTER), ("Decision: Allow", ENTER)),
            deny=(("not set", DOWN), (f"{MARK} Accept", RIGHT), (f"{MARK} Decline", ENTER)),
        ),
        ClientProgram(
            "codex",
            "Codex",
            "@openai/codex",
            "0.169.0",
            "@openai/codex-*/vendor/*/bin/codex",
            ".codex/config.toml",
            _set_up_codex,
            ("exec", "--skip-git-repo-check"),
            {"MODEL_KEY": KEY},
            allow=(("enter to submit", ENTER),),
            deny=(("enter to submit", "3"),),
        ),
        ClientProgram(
            "gemini-cli",
            "Gemini CLI",
            "@google/gemini-cli",
            "0.61.0",
            "@google/gemini-cli/bundle/gemini.js",
            ".gemini/settings.json",
            _set_up_gemini,
            ("--model", "gemini-2.5-pro", "--approval-mode", "yolo", "--prompt"),
            # It starts no server in a directory that its user has not trusted.
            {"GOOGLE_GEMINI_BASE_URL": "{model}", "GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
            flags=("--omit=optional",),
        ),
        ClientProgram(
            "opencode",
            "opencode",
            "opencode-ai",
            "1.18.33",
            "opencode-*/bin/opencode",
            ".config/opencode/opencode.json",
            _set_up_opencode,
            ("run", "--title", "Task"),
            {
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
                "OPENCODE_PURE": "1",
            },
            is_known=False,
        ),
    )
}
