"""One server of another client as OneTool's own entry: what is taken, what is changed, and what is left out."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Any, Literal, cast

from pydantic import ValidationError

from ot.config.clients.server_secrets import SecretsTaken, upper_name
from ot.config.expand import HERE, REFERENCE, WORKSPACE
from ot.config.models import Server
from ot.config.secrets import NAME
from ot.config.setting_types import RESERVED
from ot.files.private_file import read_regular

OURSELVES = ("onetool", "onetool-run")
SAME = ("command", "args", "env", "cwd", "url", "headers", "tools", "only_in")
"""What makes an entry the same server: how it is started or addressed, and what it offers where."""
KNOWN = frozenset(
    {
        *("type", "transport", "command", "args", "env", "cwd", "envFile"),
        *("url", "serverUrl", "headers", "disabled", "enabled"),
    }
)
APPROVALS = ("alwaysAllow", "autoApprove")
HARMLESS = frozenset({"description", "displayName", "name", "icon", "gallery", "version", "source", *APPROVALS})
OTHER_REFERENCE = re.compile(r"\$\{([a-zA-Z]++)(?::((?:[^}$]|\$(?!\{))*+))?+\}")
MAX_ENV_FILE = 1 << 18
RUNNERS = frozenset({"npx", "uvx", "bunx", "pnpx", "npm", "pnpm", "yarn", "pipx", "docker", "podman"})
"""Programs whose words name packages: a directory of the same name must not become what they run."""

type Scope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class ClientFile:
    """One file of a client: the user's own for all projects, or of the project in the working directory."""

    client: str
    file: Path
    scope: Scope
    repository: bool = False
    """Whether the file came with the repository, so that the user has not said what it says."""
    key: str = ""
    """Where its servers are listed, if it lists any."""
    only_in: str = ""
    """The directory that the client uses these servers in; empty where it uses them everywhere."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What finding and reading depends on: the machine, its user, and the project."""

    home: Path
    cwd: Path
    environ: Mapping[str, str] = field(repr=False)
    platform: str


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server as OneTool would write it; ``skipped`` says why it cannot be taken."""

    name: str
    place: ClientFile
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    notes: tuple[str, ...] = ()
    skipped: str = ""
    original: str = ""
    """What the client calls it."""
    held_as: str = ""
    """What the same server is called that is here already."""

    @property
    def client(self) -> str:
        """The client's name."""
        return self.place.client


def entry_of(
    name: str, given: Mapping[str, Any], place: ClientFile, around: Surroundings, known: frozenset[str]
) -> FoundServer:
    """Return OneTool's settings for a server that a client keeps as *given*, with the keys *known*."""
    return _Taking(own_name(name), place, around).server(name, dict(given), known)


def own_name(name: str) -> str:
    """Return *name* as one that a program can write."""
    # Python reads other forms of a letter as the letter itself, so the plain one is what a program will mean.
    found = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name), flags=re.ASCII).strip("_")[:60]
    found = found if found[:1].isalpha() else f"server_{found}".rstrip("_")
    return f"{found}_server" if found in RESERVED else found


def why_taken(name: str, packs: Mapping[str, str]) -> str:
    """Return what *name* already means in a program: one of *packs*, or a module; nothing if it is free."""
    return packs.get(name, "") or ("a module of Python" if name in sys.stdlib_module_names else "")


def free_name(name: str, packs: Mapping[str, str]) -> str:
    """Return *name*, or one like it that hides nothing a program means by it."""
    names = chain([name], (f"{name}_server{number}" for number in chain([""], map(str, count(2)))))
    return next(free for free in names if not why_taken(free, packs))


def name_of_same(server: FoundServer, servers: Mapping[str, Any], secrets: Mapping[str, str]) -> str:
    """Return the name of *server* among *servers*, which have these *secrets*; nothing if it is not there."""
    entry = fill_in(server.entry, {**secrets, **server.secrets})

    def unlikely(name: str) -> tuple[bool, bool, bool]:
        """Put first, of several that are alike, the one of that name, or of a name that was made of it."""
        is_used = table(servers[name]).get("enabled") is not False
        return name != server.name, not name.startswith(f"{server.name}_"), not is_used

    for name in sorted(servers, key=unlikely):
        if started_alike(table(servers[name]), secrets, entry):
            return name
    return ""


def started_alike(one: Mapping[str, Any], its: Mapping[str, str], other: Mapping[str, Any]) -> bool:
    """Return whether *one* with *its* secrets, and the *other* as it is filled in, are the same server."""
    return all(fill_in(one.get(key), its) == other.get(key) for key in SAME)


def fill_in(value: Any, secrets: Mapping[str, str]) -> Any:
    """Return *value* with what it refers to in the place of the references, as far as that is among *secrets*."""
    if isinstance(value, str):
        return REFERENCE.sub(lambda found: secrets.get(found[1], found[0]), value)
    if isinstance(value, Mapping):
        return {key: fill_in(item, secrets) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, Sequence):
        return [fill_in(item, secrets) for item in cast("Sequence[Any]", value)]
    return value


def is_onetool(given: Mapping[str, Any]) -> bool:
    """Return whether the server that a client keeps as *given* is OneTool itself."""
    packages = [re.split(r"[@\[=]", word)[0] for word in texts(given.get("args"))[:4]]
    return bool({PurePath(str(given.get("command") or "")).stem, *packages} & set(OURSELVES))


class _Taking:
    def __init__(self, name: str, place: ClientFile, around: Surroundings) -> None:
        self._name = name
        self._place = place
        self._around = around
        # Where it is used in one directory alone, that directory can be written out.
        self._here = place.only_in or HERE
        self._secrets = SecretsTaken(name)
        self._notes: list[str] = []
        self._asked_for: set[str] = set()
        self._unknown = ""

    def server(self, original: str, given: dict[str, Any], known: frozenset[str]) -> FoundServer:
        why = self._cannot(given)
        entry = {} if why else self._entry(given)
        if self._name != original:
            self._notes.append(f"called '{self._name}' here: '{original}' cannot be a name in a program")
        if left := sorted(given.keys() - known - HARMLESS):
            self._notes.append(f"left out: {', '.join(left)}")
        if self._secrets.fields:
            self._notes.append(f"moved to the secrets file: {', '.join(dict.fromkeys(self._secrets.fields))}")
        taken, notes, why = self._secrets.taken, tuple(self._notes), why or self._unknown or _invalid(entry)
        if entry and self._place.only_in:
            entry["only_in"] = self._place.only_in
        return FoundServer(self._name, self._place, entry, taken, notes, why, original)

    def _cannot(self, given: Mapping[str, Any]) -> str:
        kind = str(given.get("type") or given.get("transport") or "").lower()
        command, url = given.get("command"), given.get("url") or given.get("serverUrl")
        if is_onetool(given):
            return "it is OneTool itself"
        if kind in ("ws", "websocket"):
            return "it speaks WebSocket, which OneTool does not: use its streamable HTTP address if it has one"
        if not isinstance(command, str) and not isinstance(url, str):
            return "it has neither a command nor an address"
        if not isinstance(given.get("args") or [], list):
            return "its args are not a list"
        return ""

    def _entry(self, given: Mapping[str, Any]) -> dict[str, Any]:
        entry = self._over_http(given) if not given.get("command") else self._as_process(given)
        if given.get("disabled") is True or given.get("enabled") is False:
            entry["enabled"] = False
            self._notes.append("disabled there, so disabled here too")
        return entry

    def _over_http(self, given: Mapping[str, Any]) -> dict[str, Any]:
        url = str(given.get("url") or given.get("serverUrl"))
        headers = self._secrets.headers(self._texts("headers", given.get("headers")))
        address = self._text("url", url)
        # A repository's file shows it already, and a project's address is used as it is written.
        entry: dict[str, Any] = {"url": address if self._place.repository else self._secrets.url(address)}
        if str(given.get("type") or given.get("transport")).lower() == "sse":
            entry["type"] = "sse"
        return entry | ({"headers": headers} if headers else {})

    def _as_process(self, given: Mapping[str, Any]) -> dict[str, Any]:
        words = str(given["command"])
        args = [self._text("args", text) for text in texts(given.get("args"))]
        if " " in words and not args and not PurePath(words).is_absolute():
            words, *args = words.split()
            self._notes.append("the command line was split into command and args")
        env = self._secrets.env(self._texts("env", given.get("env"), of_environment=True)) | self._env_file(given)
        entry: dict[str, Any] = {"command": self._text("command", words)}
        cwd = cwd_here(self._text("cwd", str(given.get("cwd") or "")), self._place.scope, self._here, self._notes)
        if self._place.scope == "user" and cwd in ("", self._here):
            args = words_here(entry["command"], args, self._around.cwd, self._here, self._notes)
        more = {"args": args if self._place.repository else self._secrets.args(args), "env": env, "cwd": cwd}
        return entry | {key: value for key, value in more.items() if value}

    def _env_file(self, given: Mapping[str, Any]) -> dict[str, str]:
        name = given.get("envFile")
        if not isinstance(name, str):
            return {}
        given_path = self._text("envFile", name).replace(HERE, str(self._around.cwd))
        try:
            file, data = self._read_env_file(given_path)
            lines = data[:MAX_ENV_FILE].decode().splitlines()
        except (OSError, ValueError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or error
            self._notes.append(f"envFile {given_path} cannot be read and was left out: {why}")
            return {}
        self._notes.append(f"envFile {file} was read")
        return self._secrets.all_of(dict(filter(None, map(_variable, lines))))

    def _read_env_file(self, name: str) -> tuple[Path, bytes]:
        """Return a regular file's bytes; a repository names files of its own alone."""
        cwd = self._around.cwd
        if not self._place.repository:
            file = cwd / Path(name).expanduser()
            return file, read_regular(file, MAX_ENV_FILE, follow=True).data
        file = Path(os.path.normpath(cwd / name))
        return file, read_inside(file, cwd, MAX_ENV_FILE)

    # ---------------------------------------------------------------- references

    def _texts(self, key: str, given: Any, *, of_environment: bool = False) -> dict[str, str]:
        found = {name: _scalar(value) for name, value in table(given).items()}
        if key == "env" and (odd := [name for name in found if not NAME.fullmatch(name)]):
            self._notes.append(f"env without {', '.join(map(repr, odd))}: not a valid variable name")
            found = {name: value for name, value in found.items() if name not in odd}
        return {
            name: self._text(f"{key}.{name}", text, of_environment=of_environment)
            for name, text in found.items()
            if text is not None
        }

    def _text(self, key: str, text: str, *, of_environment: bool = False) -> str:
        text = OTHER_REFERENCE.sub(lambda found: self._reference(key, found), text)
        for found in REFERENCE.finditer(text):
            self._note_reference(key, found[1], found[2], of_environment=of_environment)
        return text

    def _reference(self, key: str, found: re.Match[str]) -> str:
        kind, rest = found[1], found[2]
        if kind == "env" and rest:
            return f"${{{rest}}}"
        if kind == "input" and rest:
            name = upper_name(rest)
            self._asked_for.add(name)
            self._notes.append(f"{key}: {found[0]} is asked for there; here add {name} to the secrets file")
            return f"${{{name}}}"
        if kind in ("workspaceFolder", "workspaceRoot"):
            self._notes.append(f"{key}: {found[0]} became {self._here}")
            return self._here
        plain = {
            **({} if self._place.repository else {"userHome": str(self._around.home)}),
            "workspaceFolderBasename": self._around.cwd.name,
            "pathSeparator": "/",
        }
        if kind in plain:
            return plain[kind]
        if rest is not None and not rest.startswith("-"):
            self._unknown = f"{key}: only {self._place.client} knows what {found[0]} is"
        return found[0]

    def _note_reference(self, key: str, name: str, default: str | None, *, of_environment: bool) -> None:
        known = name in (WORKSPACE, *self._secrets.taken) or name in self._asked_for
        if default is not None or known or (of_environment and self._place.scope == "user"):
            return
        if self._place.repository:
            self._notes.append(f"{key}: {name} is not taken from your environment: add it to the project's secrets")
            return
        if value := self._around.environ.get(name):
            # Outside of env, and in a project, the environment is not looked at.
            self._secrets.taken[name] = value
            self._notes.append(f"{key}: {name} was copied from the environment to the secrets file")
        else:
            self._notes.append(f"{key}: add {name} to the secrets file")


def read_inside(file: Path, directory: Path, limit: int) -> bytes:
    """Return a regular file of *directory*, reached from there without a link.

    Raises:
        OSError: It cannot be read so, or lies elsewhere.
    """
    root = Path(os.path.realpath(directory))
    if not file.is_relative_to(directory):
        raise OSError("it is outside the project")
    return read_regular(root / file.relative_to(directory), limit, follow=False, below=root).data


def _scalar(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(cast("object", value)) if isinstance(value, str | int | float) else None


def _variable(line: str) -> tuple[str, str] | None:
    name, equals, value = line.strip().removeprefix("export ").partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name.strip(), re.ASCII):
        return None
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return name.strip(), value[1:-1] if quoted else value.partition(" #")[0].rstrip()


def _invalid(entry: Mapping[str, Any]) -> str:
    try:
        Server.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        return str(first.get("ctx", {}).get("error", first["msg"]))
    return ""


def table(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """Return the texts in *value* if it is a list, else none."""
    return [item for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else []


# ---------------------------------------------------------------- paths from the workspace


def cwd_here(cwd: str, scope: Scope, here: str, notes: list[str]) -> str:
    """Return *cwd* as it is written here: a project's server starts in its project, a relative path is below *here*."""
    if cwd.startswith(HERE) or PurePath(cwd).is_absolute() or cwd.startswith(("~", "${")):
        return cwd
    if not cwd and scope == "user":
        return ""
    placed = _below(cwd or ".", here)
    notes.append(f"cwd: {f'{cwd} became {placed}' if cwd else f'{placed} was added, where that client starts it'}")
    if here == HERE:
        notes.append("it starts in a directory that has to be trusted for it: run 'onetool trust' there")
    return placed


def words_here(command: str, words: Sequence[str], cwd: Path, here: str, notes: list[str]) -> list[str]:
    """Return the arguments of a user's server, with those that are paths from *cwd* as paths from *here*."""
    runner = PurePath(command).stem in RUNNERS
    return [_place_word(word, cwd, here, notes, packages=runner) for word in words]


def _place_word(word: str, cwd: Path, here: str, notes: list[str], *, packages: bool) -> str:
    option, equals, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
    if not _is_path(value, cwd, packages=packages):
        return word
    placed = f"{option}{equals}{_below(value, here)}"
    notes.append(f"args: {word} became {placed}")
    return placed


def _is_path(text: str, cwd: Path, *, packages: bool) -> bool:
    if text in (".", "./"):
        return True
    explicit = text.startswith(("./", "../"))
    likely = not packages and text[:1] not in "-@/~$" and ("/" in text or bool(PurePath(text).suffix))
    # Unlike Path.exists it only says no where the text, perhaps a whole program, cannot be a path.
    return (explicit or likely) and os.path.exists(cwd / text)  # noqa: PTH110


def _below(path: str, here: str) -> str:
    rest = path.removeprefix("./").removeprefix(".") if path in (".", "./") or path.startswith("./") else path
    return f"{here}/{rest}" if rest else here
