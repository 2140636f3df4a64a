"""Secrets: values that packs may be given, and that no text may show."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ot.config.document import MAX_BYTES, Node, parse
from ot.config.problems import Problem, refuse
from ot.files.private_file import read_regular
from ot_sdk.redaction import SHORTEST, Redactor

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PUBLIC = frozenset({"HOME", "HOSTNAME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"})
"""Variables that occur in half of all paths and are never secret."""

EMPTY: Mapping[str, str] = MappingProxyType({})
MODEL_KEYS = (
    "ANTHROPIC_API_KEY", "LLAMA_API_KEY", "LM_API_TOKEN", "OLLAMA_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY",
    "VLLM_API_KEY",
)  # fmt: skip
"""The keys of models' services, as their own libraries call them: never shown, whoever uses them."""
UNUSED = " and was not used: "
"""Stands in the warnings about files with secrets of which nothing was taken."""

type NamedValues = tuple[tuple[str, str], ...]

GENERATIONS = 3
"""How many issues of a token are redacted: an older one has expired."""


class IssuedSecrets:
    """Values that nobody configured: tokens that others issue while a server runs. They are secrets at once."""

    def __init__(self, everybodys: IssuedSecrets | None = None) -> None:
        """Know of none yet; *everybodys* is to know all that these do."""
        self._everybodys = everybodys
        self._lock = threading.Lock()
        self._issues: dict[str, list[frozenset[str]]] = {}
        self._redactors: dict[str, Redactor] = {}
        self.redactor = Redactor()
        """Takes out all of them."""

    def of(self, *keys: str) -> list[Redactor]:
        """Return a redactor of the values under *keys*."""
        return [self._redactors[key] for key in keys if key in self._redactors]

    def add(self, key: str, name: str, values: Iterable[str]) -> None:
        """Redact *values* as *name* from now on; older ones under *key* are forgotten after a few issues."""
        new = frozenset(value for value in values if len(value) >= SHORTEST)
        with self._lock:
            issues = self._issues.setdefault(key, [])
            if not new or new in issues:
                return
            self._issues[key] = [*issues, new][-GENERATIONS:]
            kept = frozenset[str]().union(*self._issues[key])
            # Replaced as a whole: others read them meanwhile, in other threads.
            self._redactors = {**self._redactors, key: Redactor((name, value) for value in kept)}
            self.redactor = Redactor.join(self._redactors.values())
        if self._everybodys:
            self._everybodys.add(f"{id(self)} {key}", name, values)


@dataclass(frozen=True, eq=False)
class Secrets:
    """What is known by name: the user's, from a file or the environment, and apart from it what a project brought."""

    user: Mapping[str, str] = field(default=EMPTY, repr=False)
    project: Mapping[str, str] = field(default=EMPTY, repr=False)
    environment: Mapping[str, str] = field(default=EMPTY, repr=False)
    in_use: frozenset[str] = field(default=frozenset(), repr=False)
    issued: IssuedSecrets = field(default_factory=IssuedSecrets, repr=False)
    """What was issued to the servers in use; it grows while they run."""

    def get(self, name: str) -> str | None:
        """Return the user's secret called *name*, or nothing; what a project brought is for the project alone."""
        return self.user.get(name, self.environment.get(name))

    def names(self) -> tuple[str, ...]:
        """Return the names that the files hold, and those in use from the environment, sorted."""
        return tuple(sorted({*self.user, *self.project, *(name for name in self.in_use if name in self.environment)}))

    def using(self, names: Collection[str]) -> Secrets:
        """Return the same secrets, redacting also what the environment holds under *names*."""
        return replace(self, in_use=self.in_use | (frozenset(names) - PUBLIC))

    def redact(self, text: str) -> str:
        """Return *text* with every known value replaced by ``[secret:NAME]``."""
        return self._redactor.text(self.issued.redactor.text(text))

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.names())})"

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor(self.named_values)

    @cached_property
    def named_values(self) -> NamedValues:
        """The names and values of those that were configured."""
        used = [(name, self.environment[name]) for name in sorted(self.in_use) if name in self.environment]
        return (*self.user.items(), *self.project.items(), *used)


def read_secrets(path: Path, *, below: Path | None = None) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the secrets in the file at *path* and warnings; a missing file holds none.

    With *below*, a project's directory, no link on the way is followed.

    Raises:
        ConfigError: The file is not a flat list of names and values.
    """
    try:
        found = read_regular(path, MAX_BYTES, follow=True, below=below)
    except FileNotFoundError:
        return EMPTY, ()
    except (OSError, ValueError) as error:
        return EMPTY, (f"{path} cannot be read{UNUSED}{getattr(error, 'strerror', None) or error}",)
    unsafe = "belongs to another user" if found.writable_by_others else ""
    return secrets_in(found.data, path, "can be read by other users" if found.readable_by_others else unsafe)


def secrets_in(data: bytes, path: Path, unsafe: str = "") -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the secrets in *data*, the file at *path*, and warnings; *unsafe* says why they are not used.

    Raises:
        ConfigError: The file is not a flat list of names and values.
    """
    if unsafe:
        return EMPTY, (f"{path} {unsafe}{UNUSED}run chmod 600 on it",)
    return (EMPTY, ()) if not data.strip() else _values(parse(data, path))


def _values(node: Node) -> tuple[Mapping[str, str], tuple[str, ...]]:
    refuse([Problem(entry.place, why) for name, entry in node.entries.items() if (why := _wrong(name, entry))])
    empty = [f"{name} has no value in {entry.place.file}" for name, entry in node.entries.items() if not entry.text]
    # The text as written: a token of digits alone is still text.
    return {name: entry.text for name, entry in node.entries.items() if entry.text}, tuple(empty)


def _wrong(name: str, entry: Node) -> str:
    # No value is ever named here: error texts are read by models and kept in logs.
    if not NAME.fullmatch(name):
        return f"{name[:40]!r} cannot be a secret's name: use letters, digits and _"
    return f"the secret {name} must be one value, in quotes if need be" if entry.entries or entry.items else ""


# ---------------------------------------------------------------- the secrets of a whole host

KEPT = 32
"""What is still to be written may be of a workspace that has closed."""


class SharedRedaction:
    """Knows the secrets of every workspace that is open, and of the last that have closed, each value once.

    It is for the log alone: in a reply, what is redacted for one client would let another guess it.
    """

    def __init__(self, issued: IssuedSecrets) -> None:
        """Know what is *issued* to anybody."""
        self._issued = issued
        self._open: dict[object, NamedValues] = {}
        self._closed: list[NamedValues] = []
        self._holders = Counter[NamedValues]()
        self._redactors: dict[NamedValues, Redactor] = {}
        self._redactor = Redactor()

    def put(self, workspace: object, secrets: Secrets) -> None:
        """Take out *secrets*, which *workspace* has from now on in the place of those that it had."""
        new, old = secrets.named_values, self._open.get(workspace)
        if new != old:
            self._open[workspace] = new
            self._count({new: 1} if old is None else {new: 1, old: -1})

    def drop(self, workspace: object) -> None:
        """Note that *workspace* has closed."""
        if (closed := self._open.pop(workspace, None)) is None:
            return
        if closed in self._closed:  # commands come and go with the same secrets
            self._closed.remove(closed)
            self._count({closed: -1})
        self._closed.append(closed)
        if len(self._closed) > KEPT:
            self._count({self._closed.pop(0): -1})

    def _count(self, changes: dict[NamedValues, int]) -> None:
        self._holders.update(changes)
        self._holders = +self._holders
        if self._redactors.keys() != self._holders.keys():
            # Each is made once, for that takes longer than all else of an opening.
            self._redactors = {values: self._redactors.get(values) or Redactor(values) for values in self._holders}
            # Replaced as a whole: the log is written on a thread.
            self._redactor = Redactor.join(self._redactors.values())

    def redact(self, text: str) -> str:
        """Return *text* with every value that any workspace knows replaced by ``[secret:NAME]``; for any thread."""
        return self._redactor.text(self._issued.redactor.text(text))
