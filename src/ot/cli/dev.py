"""onetool dev: a pack's tools, listed or called again at every change of its file."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.terminal import echo

if TYPE_CHECKING:
    from ot.app import App
    from ot.cli.dev_call import DevCall
    from ot.config.paths import Paths
    from ot.registry.freshness import Freshness

PAUSE_SECONDS = 0.3


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    example = """Example: onetool dev .onetool/tools/weather/weather_tools.py 'hello(name="you")'"""
    app.command("dev", epilog=example, short_help="Call a tool of a pack, again whenever its file changes.")(dev)


def dev(
    file: Annotated[Path, typer.Argument(help="The pack's file, called <pack>_tools.py.")],
    call: Annotated[
        str | None, typer.Argument(help="""A call such as 'hello(name="you")'; without one, the tools are listed.""")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Do it once, and do not wait for changes.")] = False,
    trust_project: Annotated[
        bool,
        typer.Option("--trust-project", help="Use the project's settings, even if it is not trusted as it is now."),
    ] = False,
) -> None:
    """Call a tool of a pack, in a worker as the server would, and again whenever the file changes.

    The value goes to standard output; prints, progress, failures and the time go to standard error.
    """
    from ot.cli.dev_call import parse_call
    from ot.cli.event_loop import run_async
    from ot.registry.extension_file import pack_name_of

    pack = pack_name_of(file)
    wanted = parse_call(pack, call) if call is not None else None
    ok = run_async(_develop(Look(pack, file, wanted), once=once, trust_project=trust_project))
    raise typer.Exit(0 if ok else 1)


async def _develop(look: Look, *, once: bool, trust_project: bool) -> bool:
    from ot.app import App
    from ot.cli.own_log import start_log
    from ot.config.paths import Paths
    from ot.logs import end_logs
    from ot.registry.extension_file import extension_of_file

    paths = Paths.find()
    seen = look.stamps(paths)
    app = App(
        paths,
        trust_project=trust_project,
        extensions=lambda loaded: [extension_of_file(look.file, paths.global_dir)],
    )
    start_log(app, terminal_level=app.picture.loaded.config.logs.level)
    try:
        ok = await look.show(app)
        while not once:
            # Taken before the files are read: what is written meanwhile is the next change.
            seen = await look.changed(paths, seen)
            ok = await look.show_again(app)
        return ok
    finally:
        await app.aclose()
        end_logs()


class Look:
    """One pack's file, and what its author wants to see of it."""

    def __init__(self, pack: str, file: Path, call: DevCall | None) -> None:
        """Show the value of *call*, or the tools that there are."""
        self.file = file
        self._pack = pack
        self._call = call
        self._warned: tuple[str, ...] = ()

    async def show(self, app: App) -> bool:
        """Show it, and return whether all went well."""
        from ot.cli.dev_call import carry_out, say

        self._warn(app.picture.loaded.warnings)
        if why := app.picture.registry.pack(self._pack).broken:
            say(f"pack '{self._pack}' cannot be used: {why}")
            return False
        if self._call is not None:
            return await carry_out(app, self._call)
        self._list(app)
        return True

    async def show_again(self, app: App) -> bool:
        """Show it as the files are now."""
        from ot.cli.dev_call import say
        from ot.errors import OneToolError

        say(f"--- {time.strftime('%H:%M:%S')} changed")
        try:
            await app.reload()
        except OneToolError as error:
            say(f"onetool: {error}")
            return False
        return await self.show(app)

    def stamps(self, paths: Paths) -> Freshness:
        """Return the files as they are now: the pack's, and the settings that it may depend on."""
        from ot.config.paths import CONFIG_FILE, FOLDER
        from ot.registry.freshness import Freshness

        own = self.file.parent.rglob("*.py") if self.file.absolute().parent.name == self._pack else ()
        configs = [directory / CONFIG_FILE for directory in (paths.global_dir, paths.cwd / FOLDER)]
        return Freshness([self.file, *own, *configs], {})

    async def changed(self, paths: Paths, seen: Freshness) -> Freshness:
        """Return the files as they are, as soon as they are no longer as *seen*."""
        while not seen.is_lost(""):  # noqa: ASYNC110 - the portable way to learn of a change is to look
            await asyncio.sleep(PAUSE_SECONDS)
        return self.stamps(paths)

    def _list(self, app: App) -> None:
        from ot.registry.extension_file import extension_of_file
        from ot.registry.signature import signature_text

        for tool in app.picture.registry.pack(self._pack).tools.values():
            echo(signature_text(tool))
            if tool.description:
                echo(f"    {tool.description}")
        for secret in extension_of_file(self.file, app.paths.global_dir).secrets:
            given = secret in app.picture.workers[self._pack].secrets
            echo(f"secret {secret}: {'given' if given else 'not given'}")

    def _warn(self, warnings: tuple[str, ...]) -> None:
        from ot.cli.dev_call import say

        for warning in warnings:
            if warning not in self._warned:  # once is enough, not at every change
                say(f"warning: {warning}")
        self._warned = warnings
