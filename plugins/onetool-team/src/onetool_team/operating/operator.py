"""Operator: what who has the configuration and the keys of a team's server can ask of its stores and replicas."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from onetool_team.auth.token_file import named_tokens
from onetool_team.ledger.run_records import MOST_LISTED, RunRecords
from onetool_team.operating.kept_data import Directories, KeptData, KeptThing, count_files
from onetool_team.operating.kept_elsewhere import Logins
from onetool_team.operating.operator_audit import OperatorAudit
from onetool_team.operating.replicas import Replicas
from onetool_team.own_permissions import PermissionBook
from onetool_team.roster.roster import Roster
from onetool_team.settings import Http
from onetool_team.telemetry.keyed_hash import KeyedHash
from onetool_team.workspaces import directory_name
from ot.config.load import Loaded
from ot.errors import LoginNeeded
from ot.ledger.background_run import RunStatus
from ot.ledger.run_book import KeptLedger

END_SECONDS = 15.0
"""How long background runs that are cancelled have, before what they wrote is erased all the same."""
LOOK_SECONDS = 0.25
LATE_SECONDS = 1.0
TRIES = 3


@dataclass(frozen=True)
class Operator:
    """The stores of a team's server, and its replicas."""

    loaded: Loaded
    global_dir: Path
    ledger: KeptLedger
    records: RunRecords
    roster: Roster
    replicas: Replicas
    logins: Logins
    directories: Directories
    hashes: KeyedHash
    hide: Callable[[str], str] | None
    """Makes names secret in Redis and in the bucket; None: nothing is shared."""
    audit: OperatorAudit
    stores: Sequence[KeptData]
    """Where something of a person may be, in the order in which it is erased."""
    evidence: KeptData
    """The audit log, which is kept unless the operator wants it erased, too."""
    book: PermissionBook | None = None
    """What everybody always allowed; None: the one server knows."""

    # ---------------------------------------------------------------- who

    async def resolve(self, name: str) -> str:
        """Return the principal that *name* is: itself, the one person who is called so, or who has the token."""
        if "|" in name:
            return name
        known = [one.principal for one in await self.roster.people() if one.principal.rpartition("|")[2] == name]
        return known[0] if len(known) == 1 else f"token|{name}"

    async def people(self) -> list[dict[str, Any]]:
        """Return everybody who was seen, the latest first, with what each does and has now."""
        busy = Counter[str]()
        for answer in (await self.replicas.ask("busy")).values():
            busy.update(answer.get("runs", {}))
        under_way = Counter(run["principal"] for run in await self.under_way())
        rows: list[dict[str, Any]] = []
        for seen in await self.roster.people():
            places = [path for path in self.directories.places(seen.principal) if path.exists()]
            sizes = [await asyncio.to_thread(count_files, path) for path in places]
            more = {"last_minute": busy[seen.principal], "under_way": under_way[seen.principal]}
            rows.append(asdict(seen) | more | {"bytes": sum(size for _, size in sizes)})
        return rows

    def names_of(self, principal: str) -> dict[str, str]:
        """Return what stands for *principal* where it must not be read, and where people read."""
        return {
            "principal": principal,
            "telemetry": self.hashes.of_text(principal),
            "directory": directory_name(principal),
        } | ({"shared": self.hide(principal)} if self.hide else {})

    # ---------------------------------------------------------------- runs

    async def under_way(self) -> list[dict[str, Any]]:
        """Return the runs that replicas carry out now, each with its replica."""
        answers = await self.replicas.ask("runs")
        found = [run | {"replica": name} for name, answer in answers.items() for run in answer.get("runs", ())]
        return sorted(found, key=lambda run: run["since"])

    async def background(self, principal: str = "", most: int = MOST_LISTED) -> list[RunStatus]:
        """Return background runs of everybody, or of *principal*, the latest first."""
        if principal:
            return await self.ledger.runs(principal, most)
        return await self.records.latest([one.principal for one in await self.roster.people()], most)

    async def whose(self, id: str) -> str:
        """Return who has a run; nothing for an unknown one."""
        return await self.records.whose(id, [one.principal for one in await self.roster.people()])

    async def cancel(self, id: str) -> str | None:
        """Have a run end, wherever it is; return whose it is, or None for one that is not there or has ended."""
        for run in await self.under_way():
            if run["id"] == id and not run["background"]:
                async with self.audit.noting("cancel", {"run": id, "principal": run["principal"]}):
                    await self.replicas.ask("cancel", {"run": id})
                return run["principal"]
        principal = await self.whose(id)
        status = await self.ledger.status(principal, id) if principal else None
        if status is None or status.end:
            return None
        async with self.audit.noting("cancel", {"run": id, "principal": principal}):
            await self.ledger.cancel(principal, id)
        return principal

    # ---------------------------------------------------------------- logins

    async def log_out(self, principal: str, server: str = "") -> dict[str, Any]:
        """End the logins of *principal*, all or that at *server*, and ask again about what was always allowed."""
        ended: dict[str, str] = {}
        async with self.audit.noting("logout", {"principal": principal, "server": server}):
            for name in [server] if server else await self.logins.of(principal):
                try:
                    ended[name] = await self.logins.end(principal, name)
                except LoginNeeded:
                    continue
            patterns = await self._ask_again(principal, server)
        return {"principal": principal, "ended": ended, "asked_again": patterns}

    async def _ask_again(self, principal: str, server: str) -> list[str]:
        if self.book:
            return list(await self.book.forget(principal, server))
        answers = await self.replicas.ask("permissions", {"principal": principal, "server": server})
        return [pattern for answer in answers.values() for pattern in answer.get("patterns", ())]

    # ---------------------------------------------------------------- an end

    async def find(self, principal: str) -> list[KeptThing]:
        """Return all that is kept of *principal*, store by store."""
        return [kept for store in (*self.stores, self.evidence) for kept in await store.find(principal)]

    async def forget(self, principal: str, *, evidence: bool = False) -> list[KeptThing]:
        """End what *principal* does, and erase what is kept; return what is left."""
        named = {"principal_hash": self.hashes.of_text(principal)}
        async with self.audit.noting("forget", named):
            await self._stop(principal)
            for _ in range(TRIES):
                for store in (*self.stores, *([self.evidence] if evidence else [])):
                    await store.erase(principal)
                # A worker notes the end of a run that was cancelled a moment later.
                await asyncio.sleep(LATE_SECONDS)
                if not [kept for store in self.stores for kept in await store.find(principal)]:
                    break
        return await self.find(principal)

    async def _stop(self, principal: str) -> None:
        open_runs = [status.run.id for status in await self.background(principal) if status.end is None]
        for id in open_runs:
            await self.ledger.cancel(principal, id)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while await self._any_open(principal, open_runs):  # noqa: ASYNC110 - a worker tells nobody
                    await asyncio.sleep(LOOK_SECONDS)
        await self.replicas.ask("close", {"principal": principal})
        await self._ask_again(principal, "")

    async def _any_open(self, principal: str, ids: Sequence[str]) -> bool:
        left = set(await self.ledger.list_left_behind())
        statuses = [await self.ledger.status(principal, id) for id in ids]
        return any(one and one.end is None and one.run.id not in left for one in statuses)

    # ---------------------------------------------------------------- how it is

    async def quota(self, principal: str) -> dict[str, Any]:
        """Return what *principal* uses of each quota, and how much that may be."""
        config = self.loaded.config
        http, (kind, _, name) = config.section(Http), principal.partition("|")
        # The groups of somebody whom an issuer names are in access tokens alone.
        token = named_tokens(http, self.global_dir).get(name) if kind == "token" else None
        quotas = http.quotas.of(token.groups if token else ())
        rows = [row for row in await self.under_way() if row["principal"] == principal]
        minute = (await self.replicas.ask("busy")).values()
        open_runs = [one for one in await self.background(principal) if one.end is None]
        used = {
            "in_flight": (len(rows), quotas.in_flight),
            "runs_per_minute": (sum(one.get("runs", {}).get(principal, 0) for one in minute), quotas.runs_per_minute),
            "background.most_open": (len(open_runs), config.background.most_open),
        }
        return {"principal": principal, "used": used}

    async def status(self) -> dict[str, Any]:
        """Return the replicas and workers that are there, and how the ledger is."""
        replicas = await self.replicas.ask("status")
        return {
            "replicas": [{"name": name, **answer} for name, answer in replicas.items()],
            "workers": await self.records.list_workers(),
            "ledger": dict(await self.ledger.health()),
        }
