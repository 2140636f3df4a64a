"""PostgresSessions: one process's few connections to PostgreSQL, whose statements nobody ever cancels."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from onetool_team.ledger.postgres_schema import SchemaTooNew, bring_up_to_date
from onetool_team.state.circuit import Circuit
from onetool_team.state.shared_state import StateUnavailable
from ot.errors import LedgerUnavailable

ANSWER_SECONDS = 1.0
"""How long PostgreSQL may take for one step: all that one that is slow or gone costs a run, once."""
MOST_SESSIONS = 4
SCHEMA_SECONDS = 30.0
LONGEST_NAME = 63
"""PostgreSQL would cut off the rest, and two could be one."""
NOT_REPLICATED = "01000"
"""The warning of a commit that is on this disk and was not awaited on the standby's. It counts as a success."""
GONE = ("08", "57P")
"""How the codes of errors begin that say that PostgreSQL is not there."""
MALFORMED = (errors.DataError, errors.IntegrityError, errors.ProgrammingError)
"""What PostgreSQL says of a statement that it will never take."""
SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "2s",
    "lock_timeout": "5s",
    "TimeZone": "UTC",
}
"""Said at the connect, so that they win over those of the role. Planning would cost more than carrying out."""
POOLER = (
    "the settings of a session are not taken, as by a connection pooler: state.postgres must lead to PostgreSQL itself"
)
LOST_ON_CRASH = "PostgreSQL has {names} off: entries may be lost when its machine stops (needed: on)"

type Step = tuple[str, Mapping[str, Any]]
type Rows = list[tuple[Any, ...]]


class PostgresSessions:
    """Takes steps, each committed by itself; once PostgreSQL does not answer, it is left alone until it does."""

    def __init__(self, url: str, schema: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Connect to *url* when first needed, for tables in *schema*.

        Raises:
            ValueError: It is not an address.
        """
        self.conninfo = _conninfo(url, schema)
        self.schema = schema
        self.seconds = answer_seconds
        self._idle: list[_Session] = []
        self._places = asyncio.Semaphore(MOST_SESSIONS)
        self._working: set[asyncio.Task[list[Rows]]] = set()
        self._is_made = False
        self._making = asyncio.Lock()
        self._circuit = Circuit(self._probe, "the ledger's PostgreSQL")

    @property
    def trouble(self) -> str:
        """Why PostgreSQL cannot be reached, and since when; empty while it can be."""
        return self._circuit.trouble

    async def take(self, *steps: Step) -> list[Rows]:
        """Return the rows of each step; all of them are one transaction, and done whoever is cancelled meanwhile.

        Whatever is taken here may be taken twice, where an answer was lost.

        Raises:
            LedgerUnavailable: There is no answer, or it is a refusal.
            psycopg.Error: One of MALFORMED.
        """
        if self.trouble:
            raise LedgerUnavailable(self.trouble)
        # Cancelled while it waits for a standby, a commit would be reported as a success.
        task = asyncio.ensure_future(self._take(steps))
        self._working.add(task)
        task.add_done_callback(self._let_go)
        return await asyncio.shield(task)

    def _let_go(self, task: asyncio.Task[list[Rows]]) -> None:
        self._working.discard(task)
        if not task.cancelled():  # as by a loop that is closed
            task.exception()  # known, also where nobody waits for it any more

    async def _take(self, steps: Sequence[Step]) -> list[Rows]:
        try:
            async with asyncio.timeout(self.seconds):
                await self._places.acquire()
        except TimeoutError:
            raise LedgerUnavailable(f"all {MOST_SESSIONS} connections to PostgreSQL are busy") from None
        try:
            if self._idle and (found := await self._take_on_idle(steps)) is not None:
                return found
            return await self._take_on(await self._connect(), steps)
        except MALFORMED:
            raise
        except (psycopg.Error, OSError, TimeoutError) as error:
            if isinstance(error, psycopg.Error) and error.sqlstate and not error.sqlstate.startswith(GONE):
                raise LedgerUnavailable(f"PostgreSQL refuses: {_words(error, self.seconds)}") from None
            raise LedgerUnavailable(self._circuit.open(_words(error, self.seconds))) from None
        finally:
            self._places.release()

    async def _take_on_idle(self, steps: Sequence[Step]) -> list[Rows] | None:
        """Return the answer on a connection that was left idle; nothing when that is gone, as after a restart."""
        session = self._idle.pop()
        try:
            return await self._take_on(session, steps)
        except psycopg.OperationalError:
            if not session.is_lost:
                raise
        for one in self._idle:  # as old as this one
            await one.aclose()
        self._idle.clear()
        return None

    async def _take_on(self, session: _Session, steps: Sequence[Step]) -> list[Rows]:
        try:
            return await session.take(steps, self.seconds)
        finally:
            if session.is_lost:
                await session.aclose()
            else:
                self._idle.append(session)

    async def _connect(self) -> _Session:
        async with asyncio.timeout(max(self.seconds, ANSWER_SECONDS)):
            session = await _Session.open(self.conninfo)
        try:
            if not self._is_made:
                async with self._making, asyncio.timeout(SCHEMA_SECONDS):
                    await bring_up_to_date(session.connection, self.schema)
                self._is_made = True
        except BaseException as error:
            await session.aclose()
            if isinstance(error, SchemaTooNew):
                raise LedgerUnavailable(str(error)) from None
            raise
        return session

    async def _probe(self) -> None:
        try:
            session = await self._connect()
            self._idle.append(session)
        except (psycopg.Error, OSError, TimeoutError, LedgerUnavailable) as error:
            raise StateUnavailable(_words(error, self.seconds)) from None

    async def why_not_durable(self) -> str:
        """Return why an entry may be lost although its call was sent; nothing when PostgreSQL keeps every one."""
        asked = "SELECT name FROM pg_settings WHERE name = ANY (%(names)s) AND setting = 'off' ORDER BY 1"
        try:
            (found,) = await self.take((asked, {"names": ["fsync", "full_page_writes", "synchronous_commit"]}))
        except LedgerUnavailable as error:
            return error.why
        return LOST_ON_CRASH.format(names=" and ".join(name for (name,) in found)) if found else ""

    async def aclose(self) -> None:
        """Let what is under way come to its end, and let go of connections."""
        if self._working:
            await asyncio.wait(self._working)
        await self._circuit.aclose()
        while self._idle:
            await self._idle.pop().aclose()


class _Session:
    """One connection, with the settings that the ledger needs."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.is_cut_off = False
        self._warned = ""
        connection.add_notice_handler(self._hear)

    @classmethod
    async def open(cls, conninfo: str) -> _Session:
        try:
            connection = await AsyncConnection.connect(conninfo, autocommit=True, prepare_threshold=0)
        except psycopg.OperationalError as error:
            if "unsupported startup parameter" in str(error):
                raise psycopg.OperationalError(POOLER) from None
            raise
        try:
            found = await connection.execute("SELECT current_setting('plan_cache_mode')")
            if await found.fetchone() != (SETTINGS["plan_cache_mode"],):
                raise psycopg.OperationalError(POOLER)
        except BaseException:
            await connection.close()
            raise
        return cls(connection)

    @property
    def is_lost(self) -> bool:
        """Whether it can be used no more."""
        return self.is_cut_off or self.connection.closed

    async def take(self, steps: Sequence[Step], seconds: float) -> list[Rows]:
        """Return the rows of each step."""
        self._warned = ""
        too_late = asyncio.get_running_loop().call_later(seconds, self._cut_off)
        try:
            if len(steps) == 1:
                cursors = [await self.connection.execute(steps[0][0].encode(), steps[0][1])]
            else:
                async with self.connection.pipeline():
                    cursors = [await self.connection.execute(text.encode(), given) for text, given in steps]
            # A description of the columns would cost a tenth of the statement.
            rows = [await one.fetchall() if one.pgresult and one.pgresult.nfields else [] for one in cursors]
        except psycopg.OperationalError:
            if self.is_cut_off:
                raise TimeoutError from None
            raise
        finally:
            too_late.cancel()
        if self._warned:
            raise LedgerUnavailable(f"PostgreSQL: {self._warned}")
        return rows

    def _cut_off(self) -> None:
        """End the wait for an answer, by the wire alone: a cancel would end what it waits for, too."""
        self.is_cut_off = True
        with suppress(OSError), socket.socket(fileno=os.dup(self.connection.pgconn.socket)) as wire:
            wire.shutdown(socket.SHUT_RDWR)

    def _hear(self, said: Any) -> None:
        if said.sqlstate == NOT_REPLICATED and said.severity_nonlocalized == "WARNING":
            self._warned = said.message_primary or NOT_REPLICATED

    async def aclose(self) -> None:
        await self.connection.close()


def _conninfo(url: str, schema: str) -> str:
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError("not an address of PostgreSQL")
    if len(schema.encode()) > LONGEST_NAME:
        raise ValueError(f"a schema has at most {LONGEST_NAME} bytes")
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ValueError("not an address of PostgreSQL") from None
    quoted = '"' + schema.replace('"', '""') + '"'
    options = [f"-c {name}={_escaped(value)}" for name, value in {**SETTINGS, "search_path": quoted}.items()]
    given |= {"options": " ".join([str(given.get("options", "")), *options]), "application_name": "onetool"}
    return make_conninfo("", **given)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _words(error: Exception, seconds: float) -> str:
    """Say what went wrong, in PostgreSQL's own first line."""
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
