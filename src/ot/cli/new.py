"""onetool new pack: a working pack to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ot.cli.terminal import echo_either
from ot.cli.terminal.options import AsJson

PACK = Path(__file__).with_name("new_pack.txt")
"""The pack, with NAME where its name goes."""


def pack(
    name: Annotated[str, typer.Argument(help="The pack's name, as programs write it.")],
    use_global: Annotated[bool, typer.Option("--global", help="Write to ~/.onetool/ instead of ./.onetool/.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a working pack with one tool."""
    from ot.config.paths import FOLDER, Paths
    from ot.config.trust import Trust
    from ot.errors import ConfigError
    from ot.registry.extension_source import SUFFIX, TOOLS, pack_name_problem

    if problem := pack_name_problem(name):
        raise typer.BadParameter(problem)
    paths = Paths.find()
    here = paths.cwd / FOLDER
    if paths.ignored and not use_global:
        raise ConfigError(f"nothing was written: {paths.ignored}")
    own = use_global or here.resolve() == paths.global_dir.resolve()
    directory = paths.global_dir if own else here
    book = Trust(paths.global_dir)
    before = None if own else book.hashes(directory)
    file, text = (
        directory / TOOLS / name / f"{name}{SUFFIX}",
        PACK.read_text("utf-8").replace("NAME_TOKEN", f"{name.upper()}_TOKEN"),
    )
    text = text.replace("NAME", name)
    _write(directory, file, text, ignore=before == {})
    written = {file.relative_to(directory).as_posix(): text}
    needs_trust = not own and (before is None or not book.renew(directory, before, written, [".gitignore"]))
    lines = [
        f"Wrote {file}",
        *(["The project's .onetool/ is not trusted as it is now: look at it, then run onetool trust."] * needs_trust),
        f"""Next: onetool run '{name}.hello(name="you")'""",
    ]
    echo_either(as_json, {"pack": name, "file": str(file), "trusted": not needs_trust}, lines)


def _write(directory: Path, file: Path, text: str, *, ignore: bool) -> None:
    from ot.config.new_directory import write_ignored
    from ot.errors import ConfigError

    tools = file.parent.parent
    if tools.is_symlink():
        raise ConfigError(f"nothing was written: {tools} is a symbolic link")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        tools.mkdir(exist_ok=True)
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
        if ignore:
            write_ignored(directory)
    except FileExistsError:
        raise ConfigError(f"{file.parent} exists already and was left as it is") from None
    except OSError as error:
        raise ConfigError(f"{error.filename or directory} cannot be written: {error.strerror}") from None
