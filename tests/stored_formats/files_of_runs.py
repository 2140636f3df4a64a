"""Samples of what runs leave in files: results, logs and messages."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import yaml

from onetool_team.results.result_objects import ResultObjects
from onetool_team.roster.roster import FileRoster, Seen
from onetool_team.telemetry.audit_log import AuditLog
from onetool_team.telemetry.keyed_hash import KeyedHash
from ot.cli.logs import _entry, _lines, _text
from ot.config.models import ObjectStorage, Output
from ot.introspect.notify import append, document
from ot.ledger.kept_programs import KeptProgram, KeptPrograms, read_kept
from ot.logs import LogFile, json_line
from ot.output.file_blobs import FileBlobs
from ot.output.result_blobs import Form, ResultBlobs
from ot.output.result_store import ResultStore
from ot.output.stored_text import stored_text
from ot.registry.saved_programs import PROGRAMS, SavedProgramFiles, new_program, write_program
from ot.registry.tool import signature_text
from ot.runtime.cassettes.cassette import Cassette, RecordedCall, read_cassette
from ot_sdk import tagged
from stored_formats.frozen_world import NOW
from stored_formats.ledgers import effect
from stored_formats.stored_format import StoredFormat

# ---------------------------------------------------------------- results

RESULTS: dict[Form, str] = {
    "text": "one\ntwo\nthree\n",
    "json": stored_text([{"n": 1}, {"n": 2}], None),
    "tagged": orjson.dumps(tagged.encode({"raw": b"\0\1"})).decode(),
}
PLENTY = 1 << 20
CASSETTE: dict[str, Any] = {
    "cassette": 1,
    "engine": "exact",
    "clock": "2026-01-01T12:00:00Z",
    "seed": 7,
    "packs": ["file", "web"],
    "members": {"proj.site": "/srv/site", "file.nothing": "missing"},
    "calls": [
        {"call": "web.fetch", "kwargs": {"url": "https://example.org/"}, "at": 0.25}
        | {"told": [{"print": {"text": "fetching"}}], "returns": "one\ntwo\n"},
        {"call": "file.read", "args": ["a.bin"], "task": 1, "at": 0.5, "returns": {"$ot": "bytes", "v": "AAE="}},
        {"call": "file.read", "kwargs": {"path": "none"}, "at": 0.75}
        | {"raises": "FileNotFoundError", "message": "no file"},
        {"call": "open:read", "kwargs": {"path": "a.txt", "size": 10}, "at": 1.0, "returns": {"data": "text"}},
        {"call": "web.fetch", "kwargs": {"url": "https://example.org/slow"}},
    ],
    "result": {"value": [1, None], "printed": "fetching\n"},
}


def _clock() -> float:
    return NOW


def _result_store(blobs_of: Callable[[str], ResultBlobs]) -> ResultStore:
    return ResultStore(blobs_of, ttl=3600, max_total_bytes=PLENTY, max_page_bytes=50_000, clock=_clock)


def _in_files(directory: Path) -> ResultStore:
    return _result_store(lambda _: FileBlobs(directory, ttl=3600, max_total_bytes=PLENTY, clock=_clock))


def _in_objects(directory: Path) -> ResultStore:
    objects = ResultObjects(Output(store=ObjectStorage(url=directory.absolute().as_uri())), _clock)
    return _result_store(objects.blobs_of)


def _make_results(store: ResultStore) -> None:
    for form, text in RESULTS.items():
        store.put([text], tool="github.list_issues", owner="ada", form=form)


def _read_results(store: ResultStore, handles: list[str]) -> Any:
    metas = {meta.form: meta for meta in (store.describe(handle, owner="ada") for handle in handles)}
    part = partial(store.value, owner="ada", max_bytes=1000)
    return {
        "about": {form: [meta.total_lines, meta.size_bytes, meta.tool] for form, meta in metas.items()},
        "lines": list(store.page(metas["text"].handle, owner="ada", limit=2).lines),
        "number": part(metas["json"].handle, path="[1].n"),
        "bytes": part(metas["tagged"].handle, path="raw"),
    }


def _handles_in_files(directory: Path) -> list[str]:
    return [file.name[len("result-") : -len(".meta.json")] for file in directory.glob("*.meta.json")]


def _handles_in_objects(directory: Path) -> list[str]:
    return [file.name for file in directory.rglob("*") if file.is_file()]


RESULTS_READ = {
    "about": {
        "text": [3, 14, "github.list_issues"],
        "json": [2, 18, "github.list_issues"],
        "tagged": [1, 34, "github.list_issues"],
    },
    "lines": ["one", "two"],
    "number": 2,
    "bytes": b"\0\1",
}


# ---------------------------------------------------------------- lines for people and their programs


def _make_log(directory: Path) -> None:
    record = logging.LogRecord("ot.proxied", logging.WARNING, "", 0, "github is slow", None, None)
    record.created = NOW
    file = LogFile(directory / "onetool.log", max_bytes=PLENTY, files=2)
    file.write(f"{json_line(record, {'run': 'r1', 'request': 'q1', 'principal': 'token|ann'})}\n")
    file.close()


def _read_log(directory: Path) -> Any:
    (line,) = _lines(directory / "onetool.log", follow=False)
    return [json.loads(line), _text(_entry(line))[len("2026-01-01 12:00:00") :]]


def _make_audit(directory: Path) -> None:
    audit = AuditLog(directory / "audit.jsonl", KeyedHash("a sample's secret"))
    audit._host = "replica-1"
    audit.note_end(effect("r1", 0, 5), "done")
    audit.close()


def _read_audit(directory: Path) -> Any:
    (line,) = (directory / "audit.jsonl").read_text().splitlines()
    return {**json.loads(line), "arguments": json.loads(line)["arguments"] == _same_arguments()}


def _same_arguments() -> str:
    return KeyedHash("a sample's secret").of_arguments({"amount": 5})


def _make_roster(directory: Path) -> None:
    seen = [Seen("token|ann", NOW, NOW, 1, 30), Seen("token|ann", NOW + 60.0, NOW + 60.0, 2, 10)]
    asyncio.run(FileRoster(directory).add(seen))


def _read_roster(directory: Path) -> Any:
    found = asyncio.run(FileRoster(directory).people())
    return [(one.principal, one.first, one.last, one.runs, one.chars) for one in found]


def _make_messages(directory: Path) -> None:
    for text in ("first\nwith a second line", "second"):
        append(directory / "builds.yaml", document("build:done", text, datetime.fromtimestamp(NOW, UTC)))


def _read_messages(directory: Path) -> Any:
    return [found["message"] for found in yaml.safe_load_all((directory / "builds.yaml").read_text())]


# ---------------------------------------------------------------- cassettes


def _make_cassette(directory: Path) -> None:
    told: list[Any] = [{"print": {"text": "fetching"}}]
    calls = [
        RecordedCall(
            call="web.fetch", kwargs={"url": "https://example.org/"}, at=0.25, told=told, returns="one\ntwo\n"
        ),
        RecordedCall(call="file.read", args=["a.bin"], task=1, at=0.5, returns=tagged.encode(b"\0\1")),
        RecordedCall(call="file.read", kwargs={"path": "none"}, at=0.75, raises="FileNotFoundError", message="no file"),
        RecordedCall(call="open:read", kwargs={"path": "a.txt", "size": 10}, at=1.0, returns={"data": "text"}),
        RecordedCall(call="web.fetch", kwargs={"url": "https://example.org/slow"}),
    ]
    clock, members = datetime.fromtimestamp(NOW, UTC), {"proj.site": "/srv/site", "file.nothing": "missing"}
    Cassette(
        cassette=1, engine="exact", clock=clock, seed=7, packs=["file", "web"], members=members, calls=calls,
        result={"value": [1, None], "printed": "fetching\n"},
    ).save(directory / "run.cassette.yaml", str)  # fmt: skip


def _read_cassette(directory: Path) -> dict[str, Any]:
    return read_cassette(directory / "run.cassette.yaml").model_dump(mode="json", exclude_unset=True)


# ---------------------------------------------------------------- programs


KEPT_RUN = KeptProgram("1f0c2b7a9d3e4f56", NOW, "/work", "file.read(path='a.txt')\n")


def _make_kept(directory: Path) -> None:
    kept = KeptPrograms(directory, str)
    kept.keep(KEPT_RUN.directory, KEPT_RUN.run, KEPT_RUN.program)
    kept.close()


def _read_kept(directory: Path) -> list[dict[str, Any]]:
    return [asdict(one) for one in read_kept(directory)]


SAVED = 'def count(path: str = ".") -> int:\n    """Count."""\n    return len(path)\n'


def _make_saved(directory: Path) -> None:
    write_program(new_program(directory, "todos", SAVED, ()))


def _read_saved(directory: Path) -> list[str]:
    found = SavedProgramFiles().read(directory / PROGRAMS)
    return [signature_text(tool) for program in found for tool in program.tools]


FORMATS = (
    StoredFormat("kept_programs", _make_kept, _read_kept, [asdict(KEPT_RUN)]),
    StoredFormat("saved_programs", _make_saved, _read_saved, ["todos.count(path: str = '.') -> int"]),
    StoredFormat(
        "results_in_files",
        lambda directory: _make_results(_in_files(directory)),
        lambda directory: _read_results(_in_files(directory), _handles_in_files(directory)),
        RESULTS_READ,
    ),
    StoredFormat(
        "results_in_objects",
        lambda directory: _make_results(_in_objects(directory)),
        lambda directory: _read_results(_in_objects(directory), _handles_in_objects(directory)),
        RESULTS_READ,
    ),
    StoredFormat(
        "log",
        _make_log,
        _read_log,
        [
            {
                "ts": NOW,
                "level": "WARNING",
                "logger": "ot.proxied",
                "run": "r1",
                "request": "q1",
                "principal": "token|ann",
            }
            | {"message": "github is slow"},
            " WARNING ot.proxied: github is slow run=r1 request=q1 principal=token|ann",
        ],
    ),
    StoredFormat(
        "audit",
        _make_audit,
        _read_audit,
        {"ts": NOW, "host": "replica-1", "request": "", "run": "r1", "call": 0, "principal": "ada", "client": "unknown"}
        | {"tool": "bank.pay", "allowed_by": "", "arguments": True, "outcome": "done"},
    ),
    StoredFormat("cassette", _make_cassette, _read_cassette, CASSETTE),
    StoredFormat("roster", _make_roster, _read_roster, [("token|ann", NOW, NOW + 60.0, 3, 40)]),
    StoredFormat("messages", _make_messages, _read_messages, ["first\nwith a second line", "second"]),
)
