"""RunCarrier: carries a background run out, once; after a crash it starts again only what has changed nothing."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from ot.background.questions import BookQuestions
from ot.background.report import describe_calls, report_on
from ot.background.run_place import EnterPlace, RunPlace
from ot.errors import LedgerUnavailable, OneToolError, RunFenced, ToolUnavailable
from ot.execution.caller import Caller
from ot.ledger.background_run import BackgroundRun, EndState, RunEnd
from ot.ledger.entries import LedgerEntry
from ot.ledger.run_book import BEAT_SECONDS, Beat, KeptLedger, Start
from ot.registry.saved_programs import SavedPack
from ot.registry.tool import Tool, signature_text
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.runtime.reply import Reply
from ot.runtime.run_budget import RunStart
from ot.version import installed_version

logger = logging.getLogger(__name__)

MOST_STARTS = 3
CANCELLED = "it was cancelled"
INTERRUPTED = "whoever carried it out died after it had sent calls that change something, so it is not started again"
TOO_OFTEN = f"it was started {MOST_STARTS} times, and whoever carried it out died each time"
NO_LEDGER = "the ledger was unavailable, and nothing is sent that is not written down first"
SERVER_ENDED = "the server that carried it out has ended"
CHANGED = "packs that it uses are not those of its first start: {packs}"
BROKEN = "The run was stopped, for something failed in the server: {error}. ot.effects(run='{id}') tells what it did."
LEFT_OUT = "note: {count} blocks that are not text are left out of the result of a background run"


class RunCarrier:
    """Carries out runs of a book, each in the workspace of its principal."""

    def __init__(self, book: KeptLedger, enter: EnterPlace, *, beat_seconds: float = BEAT_SECONDS) -> None:
        """Carry out the runs that are kept in *book*."""
        self._book = book
        self._enter = enter
        self._beat_seconds = beat_seconds
        self._under_way: dict[str, asyncio.Task[RunEnd | None]] = {}

    async def carry_out(self, id: str) -> RunEnd | None:
        """Carry the run out and return its end, wherever that happens; None for an unknown run.

        Cancelling this leaves the run as it is: another start continues or stops it.
        """
        task = self._under_way.get(id)
        if task is None:
            task = self._under_way[id] = asyncio.ensure_future(self._run_until_end(id))
            task.add_done_callback(lambda _: self._under_way.pop(id, None))
            try:
                return await task
            finally:
                task.cancel()
        return await asyncio.shield(task)

    async def stop(self, id: str, why: str) -> RunEnd | None:
        """Stop a run that nobody alive carries out, and report how far it came."""
        start = await self._book.begin(id)
        if start is None or start.end or not start.number:
            return start.end if start else None
        async with self._enter(start.run.principal) as place:
            state: EndState = "cancelled" if start.cancelled else "stopped"
            end = await self._report_stop(start, place, CANCELLED if start.cancelled else why, state)
        return await self._record_end(start, end)

    async def aclose(self) -> None:
        """Leave the runs under way as they are: what they work with is about to end, and must not end them."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run_until_end(self, id: str) -> RunEnd | None:
        while True:
            start = await self._begin(id)
            if start is None or start.end:
                return start.end if start else None
            if start.number and (end := await self._run_start(start)):
                return end
            await asyncio.sleep(self._beat_seconds)

    async def _begin(self, id: str) -> Start | None:
        """Return the next start, as soon as the book can be reached."""
        while True:
            try:
                return await self._book.begin(id)
            except LedgerUnavailable as error:
                logger.warning("the book of background runs is unavailable: %s", error.why)
            await asyncio.sleep(self._beat_seconds)

    async def _run_start(self, start: Start) -> RunEnd | None:
        """Run this attempt to its end; return None if a newer attempt took over."""
        questions = BookQuestions(self._book, start.run.id, start.number)
        working = asyncio.ensure_future(self._work(start, questions))
        beating = asyncio.ensure_future(self._keep_beating(start, questions))
        try:
            await asyncio.wait((working, beating), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                end = working.result()
            else:
                end = await self._call_off(start, working, beating.result())
            return await self._record_end(start, end) if end else None
        finally:
            for task in (working, beating):
                task.cancel()
            await asyncio.wait((working, beating))

    async def _call_off(self, start: Start, working: asyncio.Future[RunEnd | None], beat: Beat) -> RunEnd | None:
        """End the work, and return how that ends the run; nothing when its end is another start's."""
        working.cancel()
        await asyncio.wait((working,))
        if beat.fenced:
            return None
        if not working.cancelled() and not working.exception():
            return working.result()  # it came to its end all the same
        async with self._enter(start.run.principal) as place:
            return await self._report_stop(start, place, CANCELLED, "cancelled")

    async def _work(self, start: Start, questions: BookQuestions) -> RunEnd | None:
        """Return how the run ended here; None if another start ends it."""
        try:
            async with self._enter(start.run.principal) as place:
                if start.cancelled:
                    return await self._report_stop(start, place, CANCELLED, "cancelled")
                if why := await self._why_not(start, place):
                    return await self._report_stop(start, place, why)
                return await self._run(start, place, questions)
        except RunFenced:
            return None
        except Exception as error:
            # Without an end, its result would never be reported.
            logger.exception("background run %s failed in the server", start.run.id)
            told = describe_calls(await self._entries(start.run, start.effects))
            texts = (BROKEN.format(error=error, id=start.run.id), *told)
            return RunEnd("stopped", time.time(), texts, type(error).__name__)

    async def _why_not(self, start: Start, place: RunPlace) -> str:
        """Return why the run must not be started again; nothing when it may."""
        if any(entry.state != "failed" for entry in start.effects):
            return INTERRUPTED
        if start.number > MOST_STARTS:
            return TOO_OFTEN
        packs = await _packs(place, start.run.command)
        noted = await self._book.use_packs(start.run.id, start.number, packs)
        changed = sorted(name for name in packs.keys() & noted.keys() if packs[name] != noted[name])
        return CHANGED.format(packs=", ".join(changed)) if changed else ""

    async def _run(self, start: Start, place: RunPlace, questions: BookQuestions) -> RunEnd | None:
        run = start.run
        questions.terminal = place.way_to_terminal(run.id)
        begun = RunStart(run.id, start.number, place.background.run_seconds)
        reply = await place.run(run.command, _caller(run, questions), background=begun)
        if reply.error == RunFenced.__name__:
            return None
        if reply.cause == LedgerUnavailable.__name__:
            return await self._report_stop(start, place, NO_LEDGER)
        return _end_of(reply)

    async def _keep_beating(self, start: Start, questions: BookQuestions) -> Beat:
        """Beat until the run must end; hand on the answers that come with a beat."""
        while True:
            await asyncio.sleep(self._beat_seconds)
            with suppress(LedgerUnavailable):  # what it must not do meanwhile, the ledger refuses
                beat = await self._book.beat(start.run.id, start.number)
                if beat.fenced or beat.cancelled:
                    return beat
                if beat.answer is not None:
                    questions.take(beat.answer)

    async def _report_stop(self, start: Start, place: RunPlace, why: str, state: EndState = "stopped") -> RunEnd:
        entries = await self._entries(start.run, start.effects)
        report = await report_on(start.run, why, entries, place)
        return RunEnd(state, time.time(), report.texts, handle=report.handle)

    async def _entries(self, run: BackgroundRun, known: Sequence[LedgerEntry]) -> Sequence[LedgerEntry]:
        try:
            return await self._book.of_run(run.principal, run.id)
        except LedgerUnavailable:
            return known

    async def _record_end(self, start: Start, end: RunEnd) -> RunEnd | None:
        """Write *end* down, and return it; nothing when another start's word counts."""
        while True:
            try:
                return end if await self._book.end(start.run.id, start.number, end) else None
            except LedgerUnavailable as error:
                logger.warning("the end of run %s could not be written down yet: %s", start.run.id, error.why)
            await asyncio.sleep(self._beat_seconds)


async def _packs(place: RunPlace, command: str) -> Mapping[str, str]:
    try:
        return (await place.read_program(command))[1]
    except OneToolError:
        return {}  # its reply will say why it cannot be read


def _caller(run: BackgroundRun, questions: BookQuestions) -> Caller:
    return Caller(
        run.principal,
        client=run.client,
        ask=questions.ask,
        opens=False,
        groups=frozenset(run.groups),
        admin=run.admin,
    )


def _end_of(reply: Reply) -> RunEnd:
    note = (LEFT_OUT.format(count=len(reply.blocks)),) if reply.blocks else ()
    handle = reply.handles[-1] if reply.handles else ""
    texts = (*reply.texts, *note)
    return RunEnd("failed" if reply.is_error else "done", time.time(), texts, reply.error, handle)


# ---------------------------------------------------------------- packs that a run uses

type PackFiles = Mapping[str, Mapping[str, bytes]]
"""The files of packs that users wrote, by pack and name."""

SIZE = 16


def packs_used(names: Collection[str], registry: ToolRegistry, files: PackFiles) -> dict[str, str]:
    """Return a fingerprint for each pack among *names*; one whose tools are not known yet has none."""
    found = {name: registry.packs[name] for name in sorted(names) if name in registry.packs}
    known = {name: pack for name, pack in found.items() if not pack.pending}
    return {name: _fingerprint(pack, files.get(name, {})) for name, pack in known.items()}


def _fingerprint(pack: Pack, files: Mapping[str, bytes]) -> str:
    hashed = hashlib.blake2b(pack.source.encode(), digest_size=SIZE)
    if pack.bundled:
        hashed.update(installed_version().encode())
    if isinstance(pack, SavedPack):
        hashed.update(pack.program.data)
    for name in sorted(files):
        hashed.update(b"\0".join((name.encode(errors="surrogatepass"), files[name], b"")))
    try:
        for tool in sorted(pack.tools.values(), key=lambda tool: tool.name):
            hashed.update(_promise(tool).encode(errors="surrogatepass"))
    except ToolUnavailable as error:
        hashed.update(str(error).encode(errors="surrogatepass"))
    return hashed.hexdigest()


def _promise(tool: Tool) -> str:
    # Not what was learned of its values: that changes without the pack.
    said = (signature_text(tool).partition(" -> ")[0], tool.doc, tool.definition, tool.read_only, tool.destructive)
    return "\0".join(map(str, said)) + "\0"
