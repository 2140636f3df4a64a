"""Opens the stores of a team's server for its operator: in Redis and PostgreSQL, or in the files of one machine."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from onetool_team.ledger.file_run_records import FileRunRecords
from onetool_team.ledger.open_postgres import open_postgres
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_run_records import PostgresRunRecords
from onetool_team.ledger.run_records import RunRecords
from onetool_team.logins.shared_token_store import LoginRecords, StateRecords, shared_token_stores
from onetool_team.operating.kept_data import (
    Directories,
    KeptData,
    KeptRecords,
    LogLines,
    RosterEntry,
    SharedKeys,
    StatisticsRows,
)
from onetool_team.operating.kept_elsewhere import Logins, Results
from onetool_team.operating.operator import Operator
from onetool_team.operating.operator_audit import OperatorAudit
from onetool_team.operating.replicas import MailedReplicas, Replicas, ThisMachine
from onetool_team.own_permissions import PermissionBook
from onetool_team.postgres.logins import PostgresLogins
from onetool_team.postgres.permissions import PostgresPermissions
from onetool_team.postgres.person_rows import PersonRows
from onetool_team.postgres.team_rows import TeamRows, open_team_rows
from onetool_team.results.object_place import ObjectPlace
from onetool_team.roster.redis_roster import open_roster
from onetool_team.settings import Http, SharedStore, Telemetry
from onetool_team.state.always_allowed import AlwaysAllowed
from onetool_team.state.open_state import Shared, open_shared
from onetool_team.telemetry.open_telemetry import STANDARD_OUTPUT, open_audit, open_hashes
from ot.build import stats_place
from ot.config.load import Loaded
from ot.config.paths import Paths, expand_home
from ot.ledger.ledger_file import LEDGER, LedgerFile
from ot.ledger.run_book import KeptLedger
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.logs import log_path
from ot.proxied.spec import resolve_specs

if TYPE_CHECKING:
    from onetool_team.state.redis_state import RedisState


@dataclass(frozen=True)
class _Kept:
    """Where runs are kept, and who can be asked about them."""

    ledger: KeptLedger
    records: RunRecords
    where: str
    replicas: Replicas
    more: list[KeptData]
    book: PermissionBook | None = None
    records_of_logins: LoginRecords | None = None
    rows: TeamRows | None = None
    """The tables of people, where there are some."""


async def open_operator(loaded: Loaded, paths: Paths, stack: AsyncExitStack) -> Operator:
    """Return it; what it opens is closed with *stack*.

    Raises:
        ConfigError: The configuration cannot be used.
    """
    config, global_dir = loaded.config, paths.global_dir
    shared = open_shared(config.section(SharedStore), loaded.secrets)
    stack.push_async_callback(shared.state.aclose)
    roster = open_roster(shared.state, shared.keys, global_dir)
    of_redis = shared.state.replicas
    kept = await _shared(loaded, shared, global_dir, stack) if of_redis else _in_files(loaded, global_dir)
    stack.push_async_callback(kept.ledger.aclose)
    shared_logins = shared_token_stores(kept.records_of_logins) if kept.records_of_logins else None
    specs = resolve_specs(loaded, paths, shared_logins=shared_logins)
    logins = Logins({name: spec.account for name, spec in specs.items() if spec.account})
    each = config.section(Http).workspaces.each
    directories = Directories(expand_home(each) if each else None, loaded, global_dir)
    hashes, telemetry = open_hashes(config, loaded.secrets), config.section(Telemetry)
    in_file = bool(telemetry.audit) and telemetry.audit != STANDARD_OUTPUT
    log = open_audit(telemetry, hashes) if in_file else None
    if log:
        stack.callback(log.close)
    by_replica = bool(telemetry.audit) and not in_file
    audit = OperatorAudit(log, kept.replicas, by_replica=by_replica, required=telemetry.audit_required)
    hide = shared.keys.hide if of_redis else str
    results: list[KeptData] = [Results(ObjectPlace(config.output.store), hide)] if config.output.store.url else []
    runs = KeptRecords(kept.records, kept.where)
    statistics = StatisticsRows(stats_place(loaded).file)
    log_lines = LogLines("log", partial(_files_of, log_path(loaded.state_dir)))
    audit_files = partial(_files_of, expand_home(telemetry.audit)) if in_file else list[Path]
    # What tells who somebody is, for a second try, goes last.
    rows = [KeptRecords(PersonRows(kept.rows, logins.servers), "postgres")] if kept.rows else []
    stores = [logins, runs, *rows, *results, statistics, directories, log_lines, RosterEntry(roster), *kept.more]
    return Operator(
        loaded=loaded,
        global_dir=global_dir,
        ledger=kept.ledger,
        records=kept.records,
        roster=roster,
        replicas=kept.replicas,
        logins=logins,
        directories=directories,
        hashes=hashes,
        hide=shared.keys.hide if config.section(SharedStore).keys else None,
        audit=audit,
        stores=stores,
        evidence=LogLines("audit", audit_files),
        book=kept.book,
    )


def _files_of(log: Path) -> list[Path]:
    """Return a log with its older files, as the server or its operator calls them."""
    return [log, *sorted(log.parent.glob(f"{log.name}.*"))]


async def _shared(loaded: Loaded, shared: Shared, global_dir: Path, stack: AsyncExitStack) -> _Kept:
    state, keys, settings = cast("RedisState", shared.state), shared.keys, loaded.config.section(SharedStore)
    replicas = await stack.enter_async_context(MailedReplicas(state, keys).open())
    more: list[KeptData] = [SharedKeys(state.connection, state.prefix, keys.hide)]
    files, book = _in_files(loaded, global_dir), AlwaysAllowed(state, keys)
    postgres = open_postgres(settings, loaded.secrets)
    if postgres is None:
        return replace(files, replicas=replicas, more=more, book=book, records_of_logins=StateRecords(state, keys))
    rows = open_team_rows(settings, loaded.secrets, keys)
    assert rows
    stack.push_async_callback(rows.sessions.aclose)
    ledger = PostgresLedger(postgres, PostgresPlace(keys), days=loaded.config.ledger.days)
    records, logins = PostgresRunRecords(ledger), PostgresLogins(rows)
    book = PostgresPermissions(rows)
    return _Kept(ledger, records, "postgres", replicas, more, book, logins, rows)


def _in_files(loaded: Loaded, global_dir: Path) -> _Kept:
    file = global_dir / LEDGER
    ledger = SqliteLedger(LedgerFile(file, days=loaded.config.ledger.days))
    return _Kept(ledger, FileRunRecords(file, ledger), str(file), ThisMachine(global_dir), [])
