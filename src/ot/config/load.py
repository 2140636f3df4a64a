"""Builds one whole picture of the configuration: the user's and, where it is trusted, the project's over it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ot.config.document import Node
from ot.config.expand import expand, references
from ot.config.layer import Directory, Layer, merge_project, read_layer, servers_used_in
from ot.config.models import Config
from ot.config.paths import Paths
from ot.config.problems import clashing_packs, refuse, validate
from ot.config.project_rules import find_loosened, not_for_projects, secrets_file_of
from ot.config.secrets import EMPTY, UNUSED, Secrets, read_secrets, secrets_in
from ot.config.sections import section_names, unused_sections
from ot.config.snapshot import Snapshot
from ot.config.trust import Trust, Verdict
from ot.errors import MissingExtra

type ProjectState = Literal["none", "untrusted", "changed", "trusted"]

CHANGES_SHOWN = 5
PROJECTS = "projects"
INSTALLERS_PLACES = re.compile("(?:UV|PIP|NPM_CONFIG)_.*|XDG_(?:CACHE|CONFIG|DATA)_HOME", re.IGNORECASE)
ABSOLUTE = re.compile(r"(?<![\w.~-])/[^\s,;:=\"']*")
STEERING = "{} lies in the working directory, where programs write: what OneTool installs and starts does not use it"
PLAIN_CHANGE = re.compile(r"[\w./@+-]{1,100} (?:was|is|can|cannot|has) [\w ,:]{1,60}")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration as it was at one moment; ``project`` holds a trusted project's files as they were checked."""

    config: Config
    secrets: Secrets
    files: tuple[Path, ...]
    warnings: tuple[str, ...]
    project_state: ProjectState
    state_dir: Path
    """Where logs and statistics are kept, in the user's own directory: a repository can bring none."""
    results_dir: Path
    project: Snapshot | None = field(default=None, repr=False)
    secret_files: tuple[Path, ...] = ()
    """Where secrets are kept, wherever that is: no program may read it."""
    servers_of_project: frozenset[str] = frozenset()
    """The servers that came with the project: the user's secrets are not theirs to have."""
    tools_of_project: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    """The settings of packs that the project brought."""
    replaced: tuple[str, ...] = ()
    """What the project puts in the place of the user's or of a bundled pack, in words."""
    below: Path | None = None
    """The project's directory, where that holds the results: in it no link is followed."""
    elsewhere: Mapping[str, str] = field(default_factory=dict[str, str])
    """The user's servers that are for other directories, each with its own."""
    own_secrets: frozenset[str] = frozenset()
    """The names of those secrets that the owner of a workspace has for itself."""

    @property
    def unused_secrets(self) -> tuple[str, ...]:
        """Which files with secrets are not used, why, and what to do about it."""
        return tuple(text for text in self.warnings if UNUSED in text)


def load_config(
    paths: Paths,
    trust: Trust | None = None,
    *,
    trust_project: bool = False,
    given: Mapping[str, Any] | None = None,
    own_secrets: Path | None = None,
    user_files: UserFiles | None = None,
) -> Loaded:
    """Return the configuration for *paths*; *trust_project* trusts the project for this once.

    Settings that are *given* are laid over those of the user's files, and secrets in the file *own_secrets* over the
    user's. *user_files* are the user's, where they have been read already.

    Raises:
        ConfigError: A file that would be used cannot be; an older picture stays as it was.
        TrustError: With *trust_project*, the project holds something that cannot be trusted.
    """
    own, own_warnings = read_secrets(own_secrets) if own_secrets else (EMPTY, ())
    user = _user_part(user_files or read_user_files(paths, given), paths, own)
    base = validate(user.node)
    here, elsewhere = servers_used_in(user.node, paths.cwd)
    trust = trust or Trust(paths.global_dir)
    judge = trust.for_this_run if trust_project else trust.state
    verdict = judge(paths.project_dir) if paths.project_dir else None
    snapshot = verdict.snapshot if verdict and verdict.state == "trusted" else None
    project = _project_part(snapshot, base) if snapshot else _Part(Node(user.node.place, {}))
    merged = merge_project(here, project.node) if snapshot else here
    config = base if merged is user.node else validate(merged)
    refuse(clashing_packs(merged))
    known = paths.project_dir if verdict and verdict.state != "untrusted" else None
    steering = _steering_variables(paths)
    both = sorted(here.at("servers").entries.keys() & project.servers.keys())
    replaced = tuple(f"the project's server '{name}' replaces yours of that name" for name in both)
    return Loaded(
        config=config,
        # What a server or the edge is given of the environment is a secret from now on, in every text that leaves.
        secrets=Secrets(user.secrets, project.secrets, _without(steering, paths.environ)).using(
            user.names.union(*(references(merged.at(section)) for section in ("servers", *section_names())))
        ),
        files=(*user.files, *project.files, *([own_secrets] if own_secrets else [])),
        warnings=(
            *own_warnings,
            *user.warnings,
            *map(STEERING.format, steering),
            *replaced,
            *_unused_sections(merged),
            *_project_warnings(paths, verdict),
            *project.warnings,
        ),
        replaced=replaced,
        project_state=verdict.state if verdict else "none",
        state_dir=_state_of(known, paths.global_dir) if known else paths.global_dir,
        # A directory that was never trusted is left untouched; one that only changed keeps its results.
        results_dir=(known or paths.global_dir) / config.output.result_store_dir,
        below=known,
        project=snapshot,
        secret_files=tuple(file for file in (user.secrets_file, own_secrets, project.secrets_file) if file),
        own_secrets=frozenset(own),
        elsewhere=elsewhere,
        servers_of_project=frozenset(project.servers),
        tools_of_project=project.node.at("tools").plain() or {},
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """One side's settings, expanded with its own secrets: neither side can take the other's."""

    node: Node
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    names: frozenset[str] = frozenset()
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    secrets_file: Path | None = None

    @property
    def servers(self) -> Mapping[str, Node]:
        return self.node.at("servers").entries


@dataclass(frozen=True, slots=True)
class UserFiles:
    """What the user's own files say, for whoever needs it for several owners."""

    layer: Layer
    secrets_file: Path
    secrets: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...]


def read_user_files(paths: Paths, given: Mapping[str, Any] | None = None) -> UserFiles:
    """Return what the files in the user's directory say; see ``load_config``."""
    layer = read_layer(Directory(paths.global_dir), given)
    secrets_file = secrets_file_of(layer, paths.global_dir)
    return UserFiles(layer, secrets_file, *read_secrets(secrets_file))


def _user_part(read: UserFiles, paths: Paths, own: Mapping[str, str]) -> _Part:
    layer, secrets_file, found, warnings = read.layer, read.secrets_file, read.secrets, read.warnings
    secrets = {**found, **own}
    advice = f"add it to {secrets_file}, or give a default as in ${{NAME:-text}}"
    node, names = expand(
        layer.node,
        attrs=secrets.get,
        tools=lambda name: secrets.get(name) or paths.environ.get(name),
        # Sections that all users share, such as the store of results, take no user's own secret.
        credentials=lambda name: found.get(name) or paths.environ.get(name),
        advice=advice,
    )
    # One that is not used is looked at too: its user may make it private at any moment.
    files = _files_of(layer, secrets_file, bool(secrets or warnings))
    open_files = [file for file in layer.files if _anyone_writes(file)]
    warnings += tuple(f"{file} can be written by every user: run chmod o-w on it" for file in open_files)
    return _Part(node, secrets, names, files, warnings, secrets_file)


def _project_part(snapshot: Snapshot, base: Config) -> _Part:
    layer = read_layer(snapshot)
    refuse([*find_loosened(layer.node, base), *not_for_projects(layer, snapshot.root)])
    secrets_file = secrets_file_of(layer, snapshot.root)
    secrets, warnings = _secrets_of(snapshot, secrets_file)
    advice = f"a project takes secrets from its own {secrets_file} alone; a default is given as in ${{NAME:-text}}"
    # The environment holds the user's secrets, and only the user's own configuration may hand those out.
    node, names = expand(layer.node, attrs=secrets.get, tools=secrets.get, credentials=secrets.get, advice=advice)
    return _Part(node, secrets, names, _files_of(layer, secrets_file, bool(secrets)), warnings, secrets_file)


def _files_of(layer: Layer, secrets_file: Path, has_secrets: bool) -> tuple[Path, ...]:
    return (*layer.files, secrets_file) if has_secrets else layer.files


def _secrets_of(snapshot: Snapshot, file: Path) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the secrets of a trusted project: those that its user has trusted, and not what is there by now."""
    name = file.relative_to(os.path.normpath(snapshot.root)).as_posix()
    data = snapshot.read(name)
    if data is None:
        return EMPTY, ()
    return secrets_in(data, file, "can be read by other users" if name in snapshot.exposed else "")


def _anyone_writes(file: Path) -> bool:
    try:
        return os.name == "posix" and bool(file.stat().st_mode & 0o002)
    except OSError:
        return False


def _unused_sections(merged: Node) -> Iterator[str]:
    for name, extra in unused_sections(merged.plain()).items():
        yield f"the settings '{name}' are not used: {MissingExtra('what reads them', extra)}"


def _project_warnings(paths: Paths, verdict: Verdict | None) -> tuple[str, ...]:
    if verdict is None:
        return (paths.ignored,) if paths.ignored else ()
    if verdict.state == "trusted":
        return verdict.warnings
    # For a model: the name of a file can be a sentence, and must not speak in our voice.
    shown = [
        change if PLAIN_CHANGE.fullmatch(change) else "a file with an unusual name"
        for change in verdict.changes[:CHANGES_SHOWN]
    ]
    shown += ["and more"] if len(verdict.changes) > CHANGES_SHOWN else []
    why = f"has changed since it was trusted ({'; '.join(shown)})" if shown else "is not trusted"
    return (*verdict.warnings, f"{paths.project_dir} {why} and is not used: look at it, then run 'onetool trust'")


def _state_of(project_dir: Path, global_dir: Path) -> Path:
    """Return the directory of one project's state."""
    real = Path(os.path.realpath(project_dir)).parent
    name = re.sub(r"[^A-Za-z0-9_-]", "_", real.name)[:60]
    return global_dir / PROJECTS / f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def installers_places(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return where variables let uv or npm look for programs, packages or settings: real paths, by variable."""
    named = [name for name in environ if INSTALLERS_PLACES.fullmatch(name)]
    # What is relative lies in the directory that they run in, which is not the repository's.
    found = {name: ABSOLUTE.findall(environ[name].replace("file://localhost/", "file:///")) for name in named}
    return {name: [os.path.realpath(path) for path in paths] for name, paths in found.items()}


def lead_into(places: Iterable[str], cwd: Path) -> bool:
    """Return whether one of the real *places* lies in *cwd*."""
    work = os.path.join(os.path.realpath(cwd), "")  # noqa: PTH118 - for everyone of a team: a Path takes four times as long
    return any(os.path.join(place, "").startswith(work) for place in places)  # noqa: PTH118 - as above


def _steering_variables(paths: Paths) -> list[str]:
    """Return the variables that let uv or npm find programs, packages or settings in files which a repository brought.

    Above the home directory everything is below the working directory, and other rules protect what they use there.
    """
    named = installers_places(paths.environ)
    if not named or paths.global_dir.is_relative_to(paths.cwd):
        return []
    return sorted(name for name, places in named.items() if lead_into(places, paths.cwd))


def _without(names: list[str], environ: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environ.items() if name not in names} if names else environ
