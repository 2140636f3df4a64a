"""Changes a configuration file on disk: checked before, backed up, and trusted afterwards only if it was before."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ot.config.document import MAX_BYTES, parse
from ot.config.inventory import take_inventory
from ot.config.layer import Directory, Layer, read_layer
from ot.config.load import secrets_file_of
from ot.config.new_directory import write_new_directory
from ot.config.paths import CONFIG_FILE, FOLDER, Paths
from ot.config.problems import refuse
from ot.config.safe_file import locked, read_regular, write_private
from ot.config.secrets import read_secrets
from ot.config.server_packs import clashing_packs
from ot.config.snapshot import Snapshot
from ot.config.template import template
from ot.config.trust import Trust
from ot.config.yaml_edit import YamlText
from ot.errors import ConfigError

BACKUPS = "backups"
MOST_BACKUPS = 50
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


def config_directory(paths: Paths, *, use_global: bool) -> Path:
    """Return the .onetool directory that is meant.

    Raises:
        ConfigError: The project's cannot be used.
    """
    if use_global or paths.cwd / FOLDER == paths.global_dir:
        return paths.global_dir
    if paths.ignored:
        raise ConfigError(f"nothing was written: {paths.ignored}")
    return paths.cwd / FOLDER


def config_text(directory: Path) -> YamlText:
    """Return the configuration file of *directory*, or the template where there is none yet.

    Raises:
        ConfigError: It cannot be read.
    """
    data = Directory(directory).read(CONFIG_FILE)
    file = directory / CONFIG_FILE
    if data is None:
        return YamlText(template(), file)
    parse(data, file)
    return YamlText(data.decode(), file)


def edit_config(paths: Paths, change: Change, *, use_global: bool, secrets: Mapping[str, str] | None = None) -> Edited:
    """Apply *change* to the user's or the project's file, and add *secrets* to the file of secrets beside it.

    Raises:
        ConfigError: It cannot be read or written, or would not be usable afterwards; then nothing was changed.
    """
    directory = config_directory(paths, use_global=use_global)
    # The lock lies in the user's directory: another file in a project's would end its trust.
    with locked(paths.global_dir / "edit"):
        return _Edit(paths, directory).carry_out(change, secrets or {})


def kept_secrets(paths: Paths, *, use_global: bool) -> Mapping[str, str]:
    """Return the secrets beside the user's or the project's file, by name.

    Raises:
        ConfigError: They cannot be read.
    """
    directory = config_directory(paths, use_global=use_global)
    layer = read_layer(_Overlaid(directory, config_text(directory).text.encode()))
    return read_secrets(secrets_file_of(layer, directory), follow=use_global)[0]


class _Edit:
    def __init__(self, paths: Paths, directory: Path) -> None:
        self._paths = paths
        self._directory = directory
        self._file = directory / CONFIG_FILE
        self._of_user = directory == paths.global_dir
        self._trust = Trust(paths.global_dir)

    def carry_out(self, change: Change, secrets: Mapping[str, str]) -> Edited:
        before, old = self._expected_hashes(), config_text(self._directory)
        new = change(old)
        layer = self._checked(new)
        is_new = not self._file.exists()
        changed = is_new or new.text != old.text
        secrets_file = self._add_secrets(layer, secrets)
        backup = self._write(old, new) if changed else None
        written = {CONFIG_FILE: new.text} if changed else {}
        return Edited(self._file, changed, backup, secrets_file, self._renewed(before, written, is_new=is_new))

    def _checked(self, new: YamlText) -> Layer:
        layer = read_layer(_Overlaid(self._directory, new.text.encode()))
        refuse(clashing_packs(layer.node))
        return layer

    def _write(self, old: YamlText, new: YamlText) -> Path | None:
        if not self._file.exists():
            write_new_directory(self._directory, new.text)
            return None
        # The user's own link to a file elsewhere stays one.
        file = Path(os.path.realpath(self._file)) if self._of_user else self._file
        if file.is_symlink():
            raise ConfigError("the file is a symbolic link and was left as it is", file=file)
        try:
            backup = self._back_up(old)
            write_private(file, new.text, stat.S_IMODE(file.stat().st_mode))
        except OSError as error:
            raise ConfigError(f"the file cannot be written: {error.strerror}", file=file) from None
        return backup

    def _back_up(self, old: YamlText) -> Path:
        folder = self._paths.global_dir / BACKUPS
        owner = "user" if self._of_user else hashlib.sha256(str(self._directory).encode()).hexdigest()[:8]
        backup = folder / f"onetool-{owner}-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}.yaml"
        write_private(backup, old.text)
        for outdated in sorted(folder.glob("onetool-*.yaml"), key=lambda file: file.stat().st_mtime)[:-MOST_BACKUPS]:
            outdated.unlink(missing_ok=True)
        return backup

    def _add_secrets(self, layer: Layer, secrets: Mapping[str, str]) -> Path | None:
        if not secrets:
            return None
        file = secrets_file_of(layer, self._directory)
        file = Path(os.path.realpath(file)) if self._of_user else file
        try:
            data = read_regular(file, MAX_BYTES, follow=False).data.decode() if file.exists() else ""
            text = YamlText(data if data.strip() else SECRETS_HEAD, file)
            for name, value in secrets.items():
                text = text if text.get(name) == value else text.put((name,), value)
            write_private(file, text.text)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"secrets cannot be kept there: {error}", file=file) from None
        return file

    # ---------------------------------------------------------------- trust

    def _expected_hashes(self) -> Mapping[str, str] | None:
        """Return the files of a trusted project; nothing where it is not trusted, or needs no trust."""
        if self._of_user:
            return None
        if not self._directory.exists() or not any(self._directory.iterdir()):
            return {}
        verdict = self._trust.state(self._directory)
        return verdict.snapshot.hashes if verdict.state == "trusted" and verdict.snapshot else None

    def _renewed(self, before: Mapping[str, str] | None, written: Mapping[str, str], *, is_new: bool) -> bool | None:
        """Trust the project again if it was trusted before and nothing but what was written here has changed."""
        if self._of_user:
            return None
        if before is None:
            return False
        inventory = take_inventory(self._directory)
        expected = {**before, **{name: _hash(text) for name, text in written.items()}}
        if is_new:
            expected = {**_of_new_directory(inventory.snapshot), **expected}
        if inventory.hashes != expected:
            return False
        self._trust.trust(inventory)
        return True


@dataclass(frozen=True, slots=True)
class _Overlaid:
    """A directory as it would be with another configuration file."""

    root: Path
    config: bytes

    def read(self, name: str) -> bytes | None:
        return self.config if name == CONFIG_FILE else Directory(self.root).read(name)


def _of_new_directory(snapshot: Snapshot) -> dict[str, str]:
    return {name: value for name, value in snapshot.hashes.items() if name in (".gitignore", "onetool.schema.json")}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
