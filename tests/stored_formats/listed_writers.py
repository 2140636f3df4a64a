"""What each module that writes something writes: stored formats, or something that no later process reads."""

from __future__ import annotations

from collections.abc import Mapping

FORMATS_OF: Mapping[str, tuple[str, ...]] = {
    "mcp_guide/folder.py": ("guide",),
    "ot/cli/terminal/chat_commands.py": ("conversation",),
    "ot/cli/terminal/own_workspace.py": ("log",),
    "ot/config/clients/connection_notes.py": ("connections",),
    "ot/config/edit_config.py": ("configuration", "secrets"),
    "ot/config/seen_text.py": ("trust",),
    "ot/config/trust.py": ("trust",),
    "ot/introspect/notify.py": ("messages",),
    "ot/ledger/ledger_file.py": ("ledger",),
    "ot/ledger/sqlite_ledger.py": ("ledger",),
    "ot/ledger/redis_effects.py": ("ledger_in_redis",),
    "ot/ledger/redis_ledger.py": ("ledger_in_redis",),
    "ot/ledger/redis_place.py": ("ledger_in_redis",),
    "ot/ledger/redis_writer.py": ("ledger_in_redis",),
    "ot/logs.py": ("log",),
    "ot/output/file_blobs.py": ("results_in_files",),
    "ot/output/object_place.py": ("results_in_objects",),
    "ot/servers/auth/shared_token_store.py": ("shared_state",),
    "ot/servers/auth/system_keyring.py": ("login",),
    "ot/servers/auth/token_store.py": ("login",),
    "ot/servers/catalogue_files.py": ("catalogue",),
    "ot/servers/definition_pins.py": ("pins",),
    "ot/servers/learned_shapes.py": ("shapes",),
    "ot/servers/openapi/documents.py": ("api_document",),
    "ot/state/always_allowed.py": ("shared_state",),
    "ot/state/presence.py": ("shared_state",),
    "ot/state/replica_mail.py": ("shared_state",),
    "ot/state/revisions.py": ("shared_state",),
    "ot/state/session_owners.py": ("shared_state",),
    "ot/stats/sqlite_sink.py": ("statistics",),
    "ot/team/http/loopback_token.py": ("http_token",),
    "ot/team/logins/pending_logins.py": ("shared_state",),
    "ot/team/telemetry/audit_log.py": ("audit",),
    "ot/workers/pack_directory.py": ("environment",),
}
"""The samples that hold what a module writes."""

NOT_STORED: Mapping[str, str] = {
    "ot/cli/new.py": "a pack to begin with, which is its author's from then on",
    "ot/cli/stats.py": "a report that browsers show",
    "ot/config/backups.py": "copies of files, unchanged",
    "ot/config/clients/client_file.py": "files of clients, in the clients' own formats",
    "ot/config/clients/connection.py": "copies of clients' files, unchanged",
    "ot/config/new_directory.py": "the configuration's template and its schema, for people and editors",
    "ot/config/reference.py": "a page of the documentation",
    "ot/files/guarded_directory.py": "files of programs",
    "ot/files/private_file.py": "what the modules above hand it",
    "ot/files/shared_database.py": "an empty file, whose tables the ledger and the statistics make",
    "ot/ledger/writer_locks.py": "empty files, which count only while they are locked",
    "ot/runtime/engines/forked/cgroup.py": "settings of the kernel's",
    "ot/runtime/engines/portable/portable_files.py": "files of programs",
    "ot/servers/place.py": "files that keep launchers from looking further up; nothing reads what is in them",
    "ot/state/redis_connection.py": "what other modules hand it, as it is",
    "ot/stats/query.py": "nothing: it reads",
    "ot/team/background/run_worker.py": "as below",
    "ot/team/docket/run_docket.py": "run ids, in the form of the library that queues; the book holds the runs",
    "ot/team/rate_window.py": "counts of the last minute, in the form of the library that counts",
    "ot_tools/_tree_walk.py": "nothing: it goes through directories step by step",
}
"""Modules whose writes are not of a format of ours, and why."""
