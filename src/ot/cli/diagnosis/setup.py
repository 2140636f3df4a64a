"""Looks at what the user has set up: secrets, trust, uv, packs, servers, and whether a program runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ot import hooks
from ot.cli.diagnosis import Finding
from ot.cli.diagnosis.starts import AT_FIRST_CALL, StartOutcome
from ot.cli.sharing.running_servers import RunningServer, running_servers
from ot.cli.terminal import pluralize
from ot.config.load import Loaded
from ot.config.migrations import find_outdated_files
from ot.config.paths import SECRETS_FILE, Paths
from ot.config.trust import Trust
from ot.errors import ConfigError
from ot.files.no_links import READ, open_file
from ot.files.private_file import read_regular
from ot.ledger.ledger_file import LEDGER
from ot.proxied.auth.login_state import LoginState, login_states
from ot.relay.place import Unshared, why_switched_off
from ot.server.declining_clients import TIMES, DecliningClients
from ot.version import installed_version
from ot.workers.pack_environment import find_uv
from ot.workspace import Workspace

UV_SECONDS = 10
PROGRAM, ANSWER = "sum(range(10))", "45"


def secrets_findings(files: set[Path], project_dir: Path | None) -> Iterator[Finding]:
    """Report files with secrets that others can read; in a project no link is followed."""
    for file in sorted(files):
        below = project_dir if project_dir and file.is_relative_to(project_dir) else None
        try:
            found = read_regular(file, 0, follow=True, below=below)
        except OSError:
            continue
        if found.readable_by_others:
            text = f"{file} has mode {found.mode:o}: others can read it, so it is not used"
            yield Finding("secrets", "problem", text, f"chmod 600 {file}", partial(_make_private, file, below))
        else:
            yield Finding("secrets", "ok", f"{file} is private")


def _make_private(file: Path, below: Path | None) -> str:
    descriptor = open_file(file, READ, below=below)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return f"{file} is private now"


def default_secrets(paths: Paths) -> set[Path]:
    """Return where secrets are looked for unless the configuration says otherwise."""
    return {place / SECRETS_FILE for place in (paths.global_dir, paths.project_dir) if place is not None}


def migration_findings(paths: Paths) -> Iterator[Finding]:
    """Report files with settings in an older form."""
    try:
        outdated = find_outdated_files(paths)
    except ConfigError:
        return  # loading it has said so already, or it is an untrusted project's
    for file in outdated:
        text = f"{file.file} holds an older form: {'; '.join(file.steps)}"
        yield Finding("configuration", "note", text, "onetool config migrate")


def client_findings(paths: Paths) -> Iterator[Finding]:
    """Return the clients whose users are not asked by them."""
    learned = DecliningClients(paths.global_dir)
    for client, count in learned.counts().items():
        if count >= TIMES:
            text = f"{client} declines questions by itself; they then wait for onetool answer in a terminal"
            yield Finding(
                "clients", "note", text, f"an answer in the client ends this note, and so does rm {learned.file}"
            )


def uv_findings(needed: bool) -> Iterator[Finding]:
    """Return whether uv is there, which packs with dependencies need."""
    uv = find_uv(os.environ)
    if uv is None:
        state = "problem" if needed else "note"
        yield Finding("uv", state, "uv was not found: packs cannot get their dependencies", "pip install uv")
        return
    try:
        asked = subprocess.run([uv, "--version"], capture_output=True, text=True, timeout=UV_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        yield Finding("uv", "problem", f"{uv} does not run: {error}", "install uv again")
        return
    yield Finding("uv", "ok", f"{asked.stdout.strip()} ({uv})")


def trust_findings(paths: Paths) -> Iterator[Finding]:
    """Return whether the project's directory is used."""
    if paths.ignored:
        yield Finding("trust", "problem", paths.ignored)
    elif paths.project_dir is None:
        yield Finding("trust", "ok", "there is no .onetool directory here: only your own settings are used")
    else:
        verdict = Trust(paths.global_dir).state(paths.project_dir)
        if verdict.state == "trusted":
            yield Finding("trust", "ok", f"{paths.project_dir} is trusted")
        else:
            why = f": {'; '.join(verdict.changes[:5])}" if verdict.changes else ""
            text = f"{paths.project_dir} is {verdict.state} and is not used{why}"
            yield Finding("trust", "note", text, "look at it, then run onetool trust")


def pack_findings(starts: Sequence[StartOutcome]) -> Iterator[Finding]:
    """Report packs that cannot be used, and why."""
    packs = [start for start in starts if start.kind == "pack"]
    for start in packs:
        if start.state == "cannot start":
            yield Finding("packs", "problem", f"{start.name} does not load: {start.why}", start.advice)
    loaded = [start.name for start in packs if start.state == "started"]
    yield Finding("packs", "ok", f"{len(loaded)} packs load: {', '.join(loaded)}")
    if later := [start.name for start in packs if start.why == AT_FIRST_CALL]:
        yield Finding("packs", "ok", f"installed at their first call: {', '.join(later)}", "onetool prefetch")


def disabled_findings(app: Workspace) -> Iterator[Finding]:
    """Report names in ``packs.disabled`` that disable nothing."""
    for name in app.picture.disabled_in_vain:
        text = f"packs.disabled names '{name}', and there is no such pack here that could be left out"
        yield Finding("packs", "note", text, "correct or remove it: onetool list shows the packs")


def need_findings(app: Workspace) -> Iterator[Finding]:
    """Report what packs need besides their packages and do not have."""
    for name, missing in app.picture.missing_needs().items():
        for need in missing:
            what, _, how = need.partition(": ")
            yield Finding("packs", "note", f"{name} needs {what}", how)


def server_findings(app: Workspace, starts: Sequence[StartOutcome]) -> Iterator[Finding]:
    """Report which servers start, which do not and why, and which of their tools have changed."""
    logins = login_states({name: spec.account for name, spec in app.picture.servers.items()})
    for start in starts:
        if start.kind == "server":
            yield _server_finding(start, logins.get(start.name))
    for server, changes in app.list_changed_definitions().items():
        text = f"{server}: {len(changes)} of its tools have changed since they were first seen"
        yield Finding("servers", "note", text, f"onetool approve {server}")


def _server_finding(start: StartOutcome, login: LoginState | None) -> Finding:
    if start.state == "started":
        words = ", ".join(filter(None, [login.state, login.until])) if login else ""
        return Finding("servers", "ok", f"{start.name} starts ({start.seconds:.1f} s){words and f', {words}'}")
    if start.state == "login needed":
        return Finding("servers", "note", f"{start.name} wants a login: {start.why}", start.advice)
    if start.state == "not started":
        return Finding("servers", "note", f"{start.name} was not started: {start.why}", start.advice)
    return Finding("servers", "problem", f"{start.name} cannot start: {start.why}", start.advice)


async def program_findings(app: Workspace) -> list[Finding]:
    """Return whether a program runs, the whole way."""
    runner = app.picture.runner
    reply = await runner.run(await runner.read(PROGRAM), app.own_caller)
    if reply.texts == (ANSWER,):
        return [Finding("engine", "ok", f"a program runs ({reply.meta['ms']} ms)")]
    return [Finding("engine", "problem", f"a program does not run: {reply.texts[-1]}")]


# ---------------------------------------------------------------- the ledger

SURVIVES = {"process": "a crash or a kill", "power": "a loss of power"}


def ledger_findings(loaded: Loaded, paths: Paths) -> Iterator[Finding]:
    """Return what the entries of this user's ledger survive."""
    text = f"{paths.global_dir / LEDGER}: entries survive {SURVIVES[loaded.config.ledger.durability]}"
    yield Finding("ledger", "ok", text)


async def plugin_findings(loaded: Loaded) -> list[Finding]:
    """Return what plugins have to say of their own parts; one that fails is itself a finding."""
    found: list[Finding] = []
    for hook in hooks.hooks(hooks.FINDINGS):
        try:
            found += await hook.load()(loaded)
        except Exception as error:  # noqa: BLE001 - other people's code
            text = f"{hook.distribution} could not be looked at: {type(error).__name__}: {error}"
            found.append(Finding("plugins", "problem", text))
    return found


# ---------------------------------------------------------------- the shared server

AREA = "shared server"


def sharing_findings(setting: str = "on") -> Iterator[Finding]:
    """Report on this user's shared servers; *setting* is the configuration's."""
    if why := why_switched_off() or ("the setting daemon is off" if setting == "off" else ""):
        yield Finding(AREA, "ok", f"each client is served alone: {why}")
        return
    try:
        servers = running_servers()
    except Unshared as error:
        yield Finding(AREA, "note", f"each client is served alone: {error}")
        return
    yield from map(_finding, servers)
    if not servers:
        yield Finding(AREA, "ok", "none is running; the first client that is connected with --shared starts it")


def _finding(server: RunningServer) -> Finding:
    if server.silent:
        advice = f"end process {pid}: kill -9 {pid}" if (pid := _pid(server)) else f"remove {server.socket}"
        return Finding(AREA, "problem", f"{server.socket} does not answer: {server.silent}", advice)
    state = server.state
    text = f"process {state['pid']} serves {pluralize(len(state['connections']), 'client')}"
    if state["build"] == installed_version():
        return Finding(AREA, "ok", text)
    text += f" with version {state['build']}, while {installed_version()} is installed"
    return Finding(AREA, "note", text, "it ends with its last client; onetool stop ends it now")


def _pid(server: RunningServer) -> str:
    """Return the process that has made the socket, as its own note says."""
    try:
        return Path(server.socket).with_suffix(".life").read_text().split()[0]
    except (OSError, IndexError):
        return ""
