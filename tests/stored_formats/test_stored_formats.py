"""What earlier releases stored is read; whatever writes something that is read later has a sample."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from checkout import ROOT, SOURCES, python_files
from stored_formats.formats import FORMATS, SAMPLES, make
from stored_formats.frozen_world import frozen
from stored_formats.make_samples import release
from stored_formats.stored_format import StoredFormat

FORMATS_OF: Mapping[str, tuple[str, ...]] = {
    "mcp_guide/folder.py": ("guide",),
    "onetool_chat/cli/chat_commands.py": ("conversation",),
    "ot/cli/terminal/own_workspace.py": ("log",),
    "ot/config/clients/connection_notes.py": ("connections",),
    "ot/config/edit_config.py": ("configuration", "secrets"),
    "ot/config/trust.py": ("trust",),
    "ot/files/run_images.py": ("undo",),
    "ot/introspect/notify.py": ("messages",),
    "ot/ledger/kept_programs.py": ("kept_programs",),
    "ot/ledger/ledger_file.py": ("ledger",),
    "ot/ledger/sqlite_ledger.py": ("ledger",),
    "onetool_team/ledger/postgres_schema.py": ("ledger_in_postgres",),
    "onetool_team/ledger/postgres_sessions.py": ("ledger_in_postgres", "people_in_postgres"),
    "ot/daemon/serving.py": ("log",),
    "ot/logs.py": ("log",),
    "ot/output/file_blobs.py": ("results_in_files",),
    "ot/runtime/cassettes/cassette.py": ("cassette",),
    "onetool_team/results/object_place.py": ("results_in_objects",),
    "ot/server/declining_clients.py": ("declining_clients",),
    "ot/proxied/asking_servers.py": ("asking",),
    "onetool_team/logins/shared_token_store.py": ("shared_state",),
    "ot/proxied/auth/system_keyring.py": ("login",),
    "ot/proxied/auth/token_store.py": ("login",),
    "ot/proxied/catalogue_files.py": ("catalogue",),
    "ot/proxied/pin_books.py": ("pins",),
    "ot/proxied/learned_shapes.py": ("shapes",),
    "ot/proxied/openapi/documents.py": ("api_document",),
    "onetool_team/state/always_allowed.py": ("shared_state",),
    "onetool_team/state/presence.py": ("shared_state",),
    "onetool_team/state/replica_mail.py": ("shared_state",),
    "onetool_team/state/revisions.py": ("shared_state",),
    "onetool_team/state/session_replicas.py": ("shared_state",),
    "onetool_team/state/shared_home.py": ("home_mark", "shared_state"),
    "onetool_team/roster/roster.py": ("roster",),
    "ot/registry/saved_programs.py": ("saved_programs",),
    "ot/stats/sqlite_sink.py": ("statistics",),
    "onetool_team/auth/token_file.py": ("tokens",),
    "onetool_team/http/loopback_token.py": ("http_token",),
    "onetool_team/logins/pending_logins.py": ("shared_state",),
    "onetool_team/telemetry/audit_log.py": ("audit",),
    "ot/workers/pack_directory.py": ("environment",),
    "ot/notes/notes_database.py": ("notes",),
}
"""The samples that hold what a module writes."""

NOT_STORED: Mapping[str, str] = {
    "ot_packs/data/data_databases.py": "a private copy of a database, for one call",
    "ot_packs/data/data_sources.py": "files that DuckDB loads, for one call",
    "ot_packs/data/data_workbook.py": "the rows of a workbook, for one call",
    "ot_packs/web/web_cache.py": "copies of pages; one that cannot be read is fetched again",
    "ot_packs/web/web_tools.py": "opens the copies of pages",
    "ot/cli/demo.py": "a small repository and its settings, removed at the end",
    "ot/cli/new.py": "a pack to begin with, which is its author's from then on",
    "ot/cli/stats.py": "a report that browsers show",
    "ot/cli/terminal/saved_media.py": "images and sounds of a reply, as their servers made them",
    "ot/config/clients/client_file.py": "files of clients, in the clients' own formats",
    "ot/config/clients/connection.py": "copies of clients' files, unchanged",
    "ot/config/new_directory.py": "the configuration's template and its schema, for people and editors",
    "ot/daemon/server_lock.py": "who lives and whether it answers, which counts only while it is locked",
    "ot/daemon/main.py": "nothing: it opens a log for people",
    "ot/files/guarded_directory.py": "files of programs",
    "ot/files/private_file.py": "what the modules above hand it",
    "ot/files/shared_database.py": "an empty file, whose tables the ledger, the notes and the statistics make",
    "ot/ledger/writer_locks.py": "empty files, which count only while they are locked",
    "ot/relay/reach.py": "an empty file, which counts only while it is locked",
    "ot/runtime/cassettes/recording.py": "the program beside a cassette, for people",
    "ot/runtime/engines/forked/cgroup.py": "settings of the kernel's",
    "ot/runtime/engines/portable/portable_files.py": "files of programs",
    "ot/proxied/place.py": "files that keep launchers from looking further up; nothing reads what is in them",
    "onetool_team/state/redis_connection.py": "what other modules hand it, as it is",
    "ot/stats/query.py": "nothing: it reads",
    "onetool_team/erased_rows.py": "nothing: it erases",
    "onetool_team/state/run_bell.py": "an empty message: somebody should look into the book, which holds the runs",
    "onetool_team/rate_window.py": "counts of the last minute, in the form of the library that counts",
    "ot_tools/_git_repository.py": "a directory in git's own format, which only the git that is called sees",
    "ot_tools/_text_changes.py": "what a helper found out of one call, in a directory of that call",
}
"""Modules whose writes are not of a format of ours, and why."""


FUNCTIONS = frozenset(
    {"write_private", "write_new", "write_json", "replacing", "write_text", "write_bytes", "keep_backup"}
    | {"LogFile", "create_file", "write_all", "set_password"}
)
STATE = frozenset({"set", "add", "send", "count"})
"""What puts a value into the shared state."""
MODES = ("w", "x", "a")
LIBRARIES = frozenset({"sqlite3", "obstore", "redis", "psycopg", "limits"})
"""Whoever imports one of these keeps something."""


def writing_modules() -> set[str]:
    """Return the modules of the source that may write a stored format, by their path."""
    files = {name: file for name, file in python_files(SOURCES).items() if "jail" not in file.parts}
    return {name for name, file in files.items() if _writes(ast.parse(file.read_text("utf-8")))}


def _writes(tree: ast.Module) -> bool:
    return any(_is_import(node) or (isinstance(node, ast.Call) and _is_write(node)) for node in ast.walk(tree))


def _is_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(name.name.partition(".")[0] in LIBRARIES for name in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARIES


def _is_write(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in FUNCTIONS or (name in STATE and _is_state(call.func)):
        return True
    words = {getattr(node, "attr", getattr(node, "id", "")) for given in call.args for node in ast.walk(given)}
    return name == "open" and ("O_CREAT" in words or _mode(call).startswith(MODES))


def _is_state(function: ast.expr) -> bool:
    of = function.value if isinstance(function, ast.Attribute) else function
    return getattr(of, "attr", getattr(of, "id", "")) in ("state", "_state")


def _mode(call: ast.Call) -> str:
    """Return the mode that a file is opened with, as far as it is written there."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [node.value for node in given if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return next((text for text in texts if len(text) <= 3), "")


MAX_BYTES = 50_000
PAGE = ROOT / "docs/reference/stored-formats.md"
KNOWN = {one.name: one for one in FORMATS}
SAMPLED = sorted(sample for sample in SAMPLES.glob("*/*") if sample.is_dir())


def named(sample: Path) -> str:
    """Return a sample's release and format."""
    return sample.relative_to(SAMPLES).as_posix()


@pytest.fixture
def copy_of(tmp_path: Path) -> Iterator[Path]:
    """A place for a copy of a sample, which its reader may change."""
    directory = tmp_path / "copy"
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def copied(sample: Path, to: Path) -> Path:
    """Return a copy of *sample* that only this user can read: version control keeps no such permissions."""
    shutil.copytree(sample, to)
    for path in (to, *to.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return to


@pytest.mark.parametrize("sample", SAMPLED, ids=named)
def test_a_sample_of_any_release_is_read_as_what_was_written(sample: Path, copy_of: Path) -> None:
    with frozen("reader"):
        assert KNOWN[sample.name].read(copied(sample, copy_of)) == KNOWN[sample.name].expected


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_what_is_written_now_is_what_the_sample_of_this_release_holds(one: StoredFormat, tmp_path: Path) -> None:
    made, kept = tmp_path / "made", SAMPLES / release() / one.name
    make(one, made)
    assert contents(made) == contents(kept), "a format has changed: run tests/stored_formats/make_samples.py"


def contents(directory: Path) -> dict[str, bytes]:
    """Return all files below *directory*, but for what an interpreter compiled of a pack."""
    files = (file for file in directory.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {file.relative_to(directory).as_posix(): file.read_bytes() for file in files}


def test_this_release_has_a_sample_of_every_format_and_none_was_dropped() -> None:
    assert {sample.name for sample in SAMPLED if sample.parent.name == release()} == KNOWN.keys()
    assert {sample.name for sample in SAMPLED} <= KNOWN.keys()


def test_samples_are_small_and_name_no_machine() -> None:
    for name, data in contents(SAMPLES).items():
        assert len(data) < MAX_BYTES, name
        assert not re.search(rb"/home/|/root/|/tmp/|/work/|/Users/", data), name


def test_every_module_that_writes_is_listed_with_its_formats_or_why_it_has_none() -> None:
    listed = {*FORMATS_OF, *NOT_STORED}
    writing = writing_modules()
    assert not writing - listed, "add these to listed_writers.py, and a sample of what they store"
    assert not listed - writing, "these write nothing any more"
    assert not FORMATS_OF.keys() & NOT_STORED.keys()


def test_every_format_has_a_module_that_writes_it() -> None:
    assert {name for names in FORMATS_OF.values() for name in names} == KNOWN.keys()


def test_the_page_has_a_row_for_every_format_and_no_other() -> None:
    rows: list[str] = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(KNOWN)
