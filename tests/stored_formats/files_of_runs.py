"""Samples of what runs leave in files: results, logs and messages."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import yaml

from ot.cli.logs import _entry, _lines, _text
from ot.config.models import Output
from ot.config.team_settings import ObjectStorage
from ot.introspect.notify import append, document
from ot.logs import LogFile, json_line
from ot.output.file_blobs import FileBlobs
from ot.output.result_blobs import Form, ResultBlobs
from ot.output.result_objects import ResultObjects
from ot.output.result_store import ResultStore
from ot.output.stored_text import stored_text
from ot.team.telemetry.audit_log import AuditLog
from ot.team.telemetry.keyed_hash import KeyedHash
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
    record = logging.LogRecord("ot.servers", logging.WARNING, "", 0, "github is slow", None, None)
    record.created = NOW
    file = LogFile(directory / "onetool.log", max_bytes=PLENTY, files=2)
    file.write(f"{json_line(record, {'run': 'r1', 'request': 'q1', 'principal': 'token|ann'})}\n")
    file.close()


def _read_log(directory: Path) -> Any:
    (line,) = _lines(directory / "onetool.log", follow=False)
    return [json.loads(line), _text(_entry(line))[len("2026-01-01 12:00:00") :]]


def _make_audit(directory: Path) -> None:
    audit = AuditLog(directory / "audit.jsonl", KeyedHash("a sample's secret"))
    audit.note_end(effect("r1", 0, 5), "done")
    audit.close()


def _read_audit(directory: Path) -> Any:
    (line,) = (directory / "audit.jsonl").read_text().splitlines()
    return {**json.loads(line), "arguments": json.loads(line)["arguments"] == _same_arguments()}


def _same_arguments() -> str:
    return KeyedHash("a sample's secret").of_arguments({"amount": 5})


def _make_messages(directory: Path) -> None:
    for text in ("first\nwith a second line", "second"):
        append(directory / "builds.yaml", document("build:done", text, datetime.fromtimestamp(NOW, UTC)))


def _read_messages(directory: Path) -> Any:
    return [found["message"] for found in yaml.safe_load_all((directory / "builds.yaml").read_text())]


FORMATS = (
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
                "logger": "ot.servers",
                "run": "r1",
                "request": "q1",
                "principal": "token|ann",
            }
            | {"message": "github is slow"},
            " WARNING ot.servers: github is slow run=r1 request=q1 principal=token|ann",
        ],
    ),
    StoredFormat(
        "audit",
        _make_audit,
        _read_audit,
        {"ts": NOW, "request": "", "run": "r1", "call": 0, "principal": "ada", "client": "unknown"}
        | {"tool": "bank.pay", "allowed_by": "", "arguments": True, "outcome": "done"},
    ),
    StoredFormat("messages", _make_messages, _read_messages, ["first\nwith a second line", "second"]),
)
