"""Changes a configuration file on disk: checked before, backed up, and trusted afterwards only if it was before."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from ot.config.document import MAX_BYTES, parse
from ot.config.layer import Directory, Layer, read_layer, servers_used_in
from ot.config.models import PolicyRule
from ot.config.new_directory import HEAD, write_new_directory
from ot.config.paths import CONFIG_FILE, FOLDER, SECRETS_FILE, Paths
from ot.config.problems import clashing_packs, refuse
from ot.config.project_rules import not_for_projects, secrets_file_of
from ot.config.secrets import NAME, read_secrets
from ot.config.trust import Trust
from ot.config.yaml_edit import YamlText
from ot.errors import ConfigError
from ot.files.private_file import hold_lock, read_regular, write_private
from ot.visible_text import printable

POLICY_LISTS: tuple[PolicyRule, ...] = get_args(PolicyRule.__value__)
SECRETS_HEAD = "# Secrets, as NAME: value. Nobody but you can read this file.\n"

type Change = Callable[[YamlText], YamlText]


@dataclass(frozen=True, slots=True)
class Edited:
    """What was written where; ``trusted`` is nothing for the user's own file, which needs no trust."""

    file: Path
    changed: bool
    backup: Path | None = None
    secrets_file: Path | None = None
    trusted: bool | None = None


def files_of(paths: Paths, *, use_global: bool) -> Directory:
    """Return the files of the .onetool directory that is meant; in a project's no link is followed.

    Raises:
        ConfigError: The project's cannot be used.
    """
    directory = paths.cwd / FOLDER
    if use_global or directory == paths.global_dir:
        return Directory(paths.global_dir)
    if paths.ignored:
        raise ConfigError(f"nothing was written: {paths.ignored}")
    return Directory(directory, directory)


def config_text(files: Directory, name: str = CONFIG_FILE) -> YamlText:
    """Return the file *name* among *files*, or an empty one where there is none yet.

    Raises:
        ConfigError: It cannot be read.
    """
    data = files.read(name)
    file = files.root / name
    if data is None:
        return YamlText(HEAD, file)
    parse(data, file)
    return YamlText(data.decode(), file)


def edit_config(
    paths: Paths,
    change: Change,
    *,
    use_global: bool,
    secrets: Mapping[str, str] | None = None,
    from_repository: bool = False,
    name: str = CONFIG_FILE,
) -> Edited:
    """Apply *change* to the user's or the project's file, and add *secrets* to the file of secrets beside it.

    What comes *from_repository* is never trusted by being written. Another *name* is that of an included file.

    Raises:
        ConfigError: It cannot be read or written, or would not be usable afterwards; then nothing was changed.
    """
    files = files_of(paths, use_global=use_global)
    # The lock lies in the user's directory: another file in a project's would end its trust.
    with hold_lock(paths.global_dir / "edit"):
        return _Edit(paths, files, name, from_repository=from_repository).carry_out(change, secrets or {})


def read_kept_secrets(paths: Paths, *, use_global: bool) -> Mapping[str, str]:
    """Return the secrets beside the user's or the project's file, by name, or raise ConfigError."""
    files = files_of(paths, use_global=use_global)
    layer = read_layer(_Overlaid(files, CONFIG_FILE, config_text(files).text.encode()))
    if files.below and not_for_projects(layer, files.root):
        return {}  # what such settings name is not read, and nothing can be written before they are put right
    return read_secrets(secrets_file_of(layer, files.root), below=files.below)[0]


def with_pattern(text: YamlText, rule: PolicyRule, pattern: str) -> YamlText:
    """Return *text* with *pattern* in the list *rule* of its policy, and in no other."""
    for other in POLICY_LISTS:
        if other != rule:
            text = text.remove_item(("policy", other), pattern)
    known: list[str] = text.get("policy", rule) or []
    return text if pattern in known else text.add_item(("policy", rule), pattern)


class _Edit:
    def __init__(self, paths: Paths, files: Directory, name: str, *, from_repository: bool) -> None:
        self._paths = paths
        self._files = files
        self._name = name
        self._directory = files.root
        self._file = files.root / name
        self._of_user = files.below is None
        self._from_repository = from_repository
        self._trust = Trust(paths.global_dir)

    def carry_out(self, change: Change, secrets: Mapping[str, str]) -> Edited:
        before = None if self._of_user else self._trust.hashes(self._directory)
        old = config_text(self._files, self._name)
        new = change(old)
        layer = self._check(new, secrets)
        is_new = not self._file.exists()
        changed = is_new or new.text != old.text
        kept = self._with_secrets(self._secrets_file(layer, before), secrets) if secrets else None
        # The directory is made first, so that its own files are there before a secret is.
        backup = self._write(old, new) if changed else None
        written = {self._file: new.text} if changed else {}
        if kept and kept.text != kept.before:
            try:
                write_private(kept.file, kept.text, below=self._files.below)
            except OSError as error:
                raise _unkept(kept.file, error) from None
            written[kept.file] = kept.text
        trusted = self._renew_trust(before, written, is_new=is_new)
        return Edited(self._file, changed, backup, kept.file if kept else None, trusted)

    def _check(self, new: YamlText, secrets: Mapping[str, str]) -> Layer:
        layer = read_layer(_Overlaid(self._files, self._name, new.text.encode()))
        here, _ = servers_used_in(layer.node, self._paths.cwd)
        refuse([*clashing_packs(here), *([] if self._of_user else not_for_projects(layer, self._directory))])
        for name in secrets:
            if not NAME.fullmatch(name):
                raise ConfigError(f"{name[:40]!r} cannot be a secret's name: use letters, digits and _")
        return layer

    def _secrets_file(self, layer: Layer, before: Mapping[str, str] | None) -> Path:
        """Return where secrets are kept; an untrusted project cannot choose that."""
        file = secrets_file_of(layer, self._directory)
        if self._of_user:
            return Path(os.path.realpath(file))
        if before is None and file != self._directory / SECRETS_FILE:
            raise ConfigError(
                f"the project is not trusted, and its settings choose where secrets go ({printable(str(file))})",
                file=layer.node.find(("secrets_file",)).place.file,
                hint="look at it and run onetool trust first; nothing was written",
            )
        return file

    def _write(self, old: YamlText, new: YamlText) -> Path | None:
        if not self._file.exists():
            write_new_directory(self._directory, new.text)
            return None
        # The user's own link to a file elsewhere stays one; a project's could not be read.
        file = Path(os.path.realpath(self._file)) if self._of_user else self._file
        try:
            backup = self._back_up(old)
            write_private(file, new.text, stat.S_IMODE(file.lstat().st_mode), below=self._files.below)
        except OSError as error:
            raise ConfigError(f"the file cannot be written: {error.strerror}", file=file) from None
        return backup

    def _back_up(self, old: YamlText) -> Path:
        owner = "user" if self._of_user else hashlib.sha256(str(self._directory).encode()).hexdigest()[:8]
        return keep_backup(self._paths.global_dir, f"onetool-{owner}", ".yaml", old.text)

    def _with_secrets(self, file: Path, secrets: Mapping[str, str]) -> _Kept:
        try:
            data = read_regular(file, MAX_BYTES, follow=False, below=self._files.below).data.decode()
        except FileNotFoundError:
            data = ""
        except (OSError, UnicodeDecodeError) as error:
            raise _unkept(file, error) from None
        text = YamlText(data if data.strip() else SECRETS_HEAD, file)
        for name, value in secrets.items():
            text = text if text.get(name) == value else text.put((name,), value)
        return _Kept(file, data, text.text)

    # ---------------------------------------------------------------- trust

    def _renew_trust(
        self, before: Mapping[str, str] | None, written: Mapping[Path, str], *, is_new: bool
    ) -> bool | None:
        """Trust the project again if it was trusted before and nothing but what was written here has changed."""
        if self._of_user:
            return None
        if before is None or (self._from_repository and written):
            return False
        texts = {file.relative_to(self._directory).as_posix(): text for file, text in written.items()}
        return self._trust.renew(self._directory, before, texts, (".gitignore",) if is_new else ())


@dataclass(frozen=True, slots=True)
class _Overlaid:
    """A directory as it would be with one file changed."""

    files: Directory
    name: str
    data: bytes

    @property
    def root(self) -> Path:
        return self.files.root

    def read(self, name: str) -> bytes | None:
        return self.data if name == self.name else self.files.read(name)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A file of secrets as it was and as it is to be."""

    file: Path
    before: str = field(repr=False)
    text: str = field(repr=False)


def _unkept(file: Path, error: Exception) -> ConfigError:
    return ConfigError(f"secrets cannot be kept there: {error}", file=file)


# ---------------------------------------------------------------- copies of what was there

BACKUPS = "backups"
MOST_BACKUPS = 50


def keep_backup(global_dir: Path, name: str, suffix: str, text: str) -> Path:
    """Keep *text* as a private copy, and return where; of all copies with the first word of *name* the last 50 stay.

    Raises:
        OSError: It cannot be written.
    """
    folder = global_dir / BACKUPS
    backup = folder / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}{suffix}"
    write_private(backup, text)
    copies = folder.glob(f"{name.partition('-')[0]}-*{suffix}")
    for outdated in sorted(copies, key=lambda file: file.stat().st_mtime)[:-MOST_BACKUPS]:
        outdated.unlink(missing_ok=True)
    return backup
