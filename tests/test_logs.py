"""The server's own log: spans, lines, files, and what never gets into them."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ot import hooks
from ot.cli.logs import _text as shown_entry  # pyright: ignore[reportPrivateUsage] - the command's own lines
from ot.cli.logs import logs as show_log
from ot.log_span import LOG_FILE_ONLY, LogSpan, SpanMessage, cut_arguments
from ot.logs import (
    LIBRARY_LINES,
    LIBRARY_SECONDS,
    LOGGERS,
    BatchedHandler,
    LibraryHandler,
    LogFile,
    configure_logs,
    current_principal,
    current_run,
    json_line,
    text_line,
)
from pace import PATIENCE

logger = logging.getLogger("ot.test_logs")


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Leave the loggers as they were."""
    root = logging.root.handlers[:]
    kept = [
        (logging.getLogger(name), logging.getLogger(name).__dict__.copy()) for name in (*LOGGERS, *hooks.packages())
    ]
    yield
    for one, state in kept:
        for handler in one.handlers:
            handler.close()
        one.__dict__.update(state)
        one.manager._clear_cache()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - setLevel does it too
    logging.root.handlers[:] = root


def entries(path: Path) -> list[dict[str, Any]]:
    for handler in logging.getLogger("ot").handlers:
        handler.flush()
    return [json.loads(line) for line in path.read_text().splitlines()]


def start(path: Path, level: str = "INFO", **options: Any) -> Path:
    configure_logs(level, file=LogFile(path, max_bytes=1_000_000, files=2), **options)
    return path


def test_a_span_says_what_how_long_and_how_it_ended(tmp_path: Path) -> None:
    path = start(tmp_path / "l" / "onetool.log")
    with LogSpan(logger, "proxy.connect", server="github") as span:
        span.add(toolCount=12)
    with pytest.raises(KeyError), LogSpan(logger, "proxy.connect", server="none"):
        raise KeyError("x" * 1000)
    good, bad = entries(path)
    assert (good["span"], good["status"], good["server"], good["toolCount"]) == (
        "proxy.connect",
        "SUCCESS",
        "github",
        12,
    )
    assert 0 <= good["duration"] < 5
    assert (bad["status"], bad["errorType"], bad["level"]) == ("FAILED", "KeyError", "WARNING")
    assert len(bad["errorMessage"]) == 300


def test_the_file_is_private_and_lines_carry_their_run(tmp_path: Path) -> None:
    path = start(tmp_path / "logs" / "onetool.log")
    token = current_run.set("ab12")
    logger.info("from %s", "a tool")
    current_run.reset(token)
    logger.info("from nobody")
    first, second = entries(path)
    assert (first["message"], first["run"]) == ("from a tool", "ab12")
    assert "run" not in second
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_every_line_says_who_asked_and_the_command_shows_one_persons_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = start(tmp_path / "logs" / "onetool.log", "DEBUG")
    for who in ("token|ann", "https://id.example|ann", "token|joann", ""):
        token = current_principal.set(who)
        logger.info("said by %s", who or "nobody")
        LogSpan(logger, "tool.call", run="ab12").end()
        current_principal.reset(token)
    assert [entry.get("principal", "") for entry in entries(path)] == [
        who for who in ("token|ann", "https://id.example|ann", "token|joann", "") for _ in range(2)
    ]
    on_terminal = capsys.readouterr().err.splitlines()
    assert [line.rpartition("=")[2] for line in on_terminal[:2]] == ["token|ann"] * 2
    assert "principal" not in "".join(on_terminal[-2:])

    monkeypatch.setattr("ot.cli.logs._path", lambda shared: path)
    for asked, shown in (("ann", 4), ("token|ann", 2), ("joann", 2), ("an", 0), ("token|", 0), ("", 8)):
        show_log(principal=asked, as_json=True)
        assert len(capsys.readouterr().out.splitlines()) == shown, asked


def test_long_fields_are_cut_and_passwords_in_addresses_masked() -> None:
    long = {name: name[0] * 500 for name in ("path", "query", "other")}
    given = {**long, "url": "https://me:pass@h/" + "x" * 500, "count": 3, "nothing": ""}
    span = SpanMessage("s", 1.0, "", "", given)
    found = span.fields()
    assert {name: len(found[name]) for name in ("path", "url", "query", "other")} == {
        "path": 200, "url": 120, "query": 100, "other": 120,
    }  # fmt: skip
    assert found["url"].startswith("https://***@h/x")
    assert found["count"] == 3
    assert "nothing" not in found


def test_a_text_of_several_lines_stays_one_record() -> None:
    assert "\n" not in str(SpanMessage("s", 1.0, "E", "one\ntwo\r\nINFO forged", {"query": "a\nb"}))


def test_arguments_are_told_by_kind_where_they_are_large() -> None:
    told = cut_arguments({"rows": [1] * 1000, "count": 5, "flag": None, "data": b"x" * 10**6})
    assert "rows=<list of 1000>, count=5, flag=None" in told
    assert len(told) < 30_000
    assert len(SpanMessage("tool.call", 1.0, "", "", {"arguments": told}).fields()["arguments"]) == 120


def test_secrets_are_redacted_in_file_and_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = start(tmp_path / "onetool.log", "DEBUG", redact=lambda text: text.replace("hunter22", "[secret]"))
    logger.warning("said hunter22")
    with LogSpan(logger, "tool.call", arguments="key='hunter22'"):
        pass
    try:
        raise ValueError("hunter22")
    except ValueError:
        logger.exception("it failed")
    assert len(entries(path)) == 3
    assert "hunter22" not in path.read_text() + capsys.readouterr().err
    assert "Traceback" in entries(path)[2]["trace"]


def test_successful_spans_come_on_standard_error_only_with_debug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for level, shown in (("INFO", False), ("DEBUG", True)):
        path = start(tmp_path / f"{level}.log", level)
        with LogSpan(logger, "runner.execute"):
            pass
        LogSpan(logger, "tool.call").end("ToolTimeout")
        assert len(entries(path)) == 2
        err = capsys.readouterr().err
        assert ("runner.execute SUCCESS" in err) is shown
        assert "tool.call FAILED" in err


def test_what_is_for_the_file_alone_is_not_shown_to_who_waits_at_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = start(tmp_path / "onetool.log", terminal_level="WARNING")
    logger.warning("slow call", extra=LOG_FILE_ONLY)
    logger.warning("seen")
    assert [entry["message"] for entry in entries(path)] == ["slow call", "seen"]
    err = capsys.readouterr().err
    assert "slow call" not in err
    assert "seen" in err


def test_lines_on_standard_error_can_be_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = start(tmp_path / "onetool.log", format="json")
    logger.info("hello")
    entries(path)
    assert json.loads(capsys.readouterr().err)["message"] == "hello"


def test_lines_of_the_protocols_library_are_written_as_ours_are(tmp_path: Path) -> None:
    program = (
        "import logging, ot.server, ot.logs\n"
        "ot.logs.configure_logs('INFO', format='json')\n"
        "import fastmcp\n"
        "logging.getLogger('fastmcp.server.server').info('starting')\n"
        "logging.getLogger('fastmcp.server.server').error('Error calling tool')\n"
        "ot.logs.end_logs()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        check=True,
        env={**os.environ, "FASTMCP_LOG_ENABLED": "true"},
    )
    assert [json.loads(line)["message"] for line in ended.stderr.splitlines()] == ["Error calling tool"]


def test_a_full_file_makes_way_and_few_are_kept(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "l.log", max_bytes=1000, files=3)
    for number in range(100):
        file.write(f"{number:03d} {'x' * 90}\n")
    file.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.log", "l.log.1", "l.log.2"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    kept = "".join((tmp_path / name).read_text() for name in ("l.log.2", "l.log.1", "l.log")).splitlines()
    assert [int(line[:3]) for line in kept] == list(range(100 - len(kept), 100))


WRITE = """
import sys
from pathlib import Path
from ot.cli.logs import _text as shown_entry  # pyright: ignore[reportPrivateUsage] - the command's own lines
from ot.logs import LogFile
file = LogFile(Path(sys.argv[1]), max_bytes=20_000, files=50)
for number in range(400):
    file.write(f"{sys.argv[2]} {number} {'x' * 50}\\n")
"""


def test_processes_that_share_a_file_lose_no_line_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "l.log"
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, str(path), f"{n}"]) for n in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    lines = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert len(lines) == len(set(lines)) == 1600
    assert all(line.endswith("x" * 50) for line in lines)


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "l.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        LogFile(tmp_path / "l.log", max_bytes=1000, files=1).write("x\n")


def test_a_pipe_that_nobody_reads_holds_up_nobody() -> None:
    read, write = os.pipe()

    def into_the_pipe(text: str) -> None:
        os.write(write, text.encode())

    handler = BatchedHandler(into_the_pipe, text_line, str, 0.001)
    done = threading.Event()

    def talk() -> None:
        for _ in range(2000):
            handler.handle(logging.LogRecord("ot", logging.INFO, "", 0, "x" * 500, None, None))
        done.set()

    threading.Thread(target=talk, daemon=True).start()
    assert done.wait(PATIENCE)
    os.close(read)
    handler.close()
    os.close(write)


def test_what_a_record_refers_to_is_written_as_it_was(tmp_path: Path) -> None:
    path = start(tmp_path / "onetool.log")
    changing = ["before"]
    logger.info("it was %s", changing)
    changing[0] = "after"
    assert entries(path)[0]["message"] == "it was ['before']"


def test_a_json_line_is_one_line_of_json() -> None:
    record = logging.LogRecord("ot", logging.INFO, "", 0, "a\nb", None, None)
    assert json.loads(json_line(record, {"run": "r"}))["message"] == "a\nb"
    assert "\n" not in json_line(record, {"run": "r"})


def test_a_secret_is_known_as_one_also_where_a_text_is_cut() -> None:
    secret = "s3cr3t-token-of-forty-characters-or-so-xx"
    span = SpanMessage("tool.call", 1.0, "ValueError", "x" * 290 + secret, {"url": "y" * 110 + secret, "calls": 2})
    record = logging.LogRecord("ot", logging.INFO, "", 0, span, None, None)
    for line in (json_line, text_line):
        text = line(record, {}, lambda text: text.replace(secret, "[secret:TOKEN]"))
        assert secret[:5] not in text
        assert "[secret:" in text


@pytest.mark.parametrize("raised", ["", "ValueError: x\n2026-01-01 00:00:00,000 ERROR ot: forged \x1b[2J"])
def test_what_is_logged_cannot_look_like_another_line_nor_steer_a_terminal(raised: str) -> None:
    message = "an unknown tool: x\n2026-01-01 00:00:00,000 ERROR ot: forged\r\x1b[2J\u2028"
    record = logging.LogRecord("ot", logging.INFO, "", 0, message, None, None)
    record.exc_text = raised or None
    entry = json.loads(json_line(record, {"run": "r1"}))
    for text in (text_line(record, {"run": "r1"}), shown_entry(entry)):
        first, *others = text.splitlines()
        assert "unknown tool: x" in first
        assert others
        assert all(line.startswith("    ") for line in others)
        assert "\x1b" not in text


def test_a_message_that_cannot_be_filled_in_fails_nobody(tmp_path: Path) -> None:
    path = start(tmp_path / "onetool.log")
    logger.warning("%d calls", "many")
    (entry,) = entries(path)
    assert entry["message"] == "%d calls (TypeError: it cannot be filled in)"


# ---------------------------------------------------------------- what libraries log


def test_warnings_of_libraries_are_lines_of_this_log_and_of_no_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "uvicorn",
        "uvicorn.error",
        "fastmcp",
    ):  # as at the start of a process: a test may have set them for its server
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
        monkeypatch.setattr(logging.getLogger(name), "_cache", {})
    path = start(tmp_path / "onetool.log", format="json", redact=lambda text: text.replace("hunter22", "[secret]"))
    for library in ("uvicorn.error", "fastmcp.server", "asyncio"):
        logging.getLogger(library).warning("said hunter22")
        logging.getLogger(library).info("unheard")
    told = [(entry["logger"], entry["message"]) for entry in entries(path)]
    assert told == [(library, "said [secret]") for library in ("uvicorn.error", "fastmcp.server", "asyncio")]
    assert [json.loads(line)["message"] for line in capfd.readouterr().err.splitlines()] == ["said [secret]"] * 3


def test_a_library_that_logs_too_much_is_left_out_for_a_minute_and_counted() -> None:
    clock, seen = [0.0], list[str]()
    keep = logging.Handler()
    keep.emit = lambda record: seen.append(f"{record.name}: {record.getMessage()}")
    handler = LibraryHandler([keep], lambda: clock[0])

    def say(library: str, times: int) -> None:
        for _ in range(times):
            handler.handle(logging.LogRecord(library, logging.WARNING, "", 0, "odd", None, None))

    say("uvicorn.error", 1000)
    say("httpx", 1)
    assert len(seen) == LIBRARY_LINES + 2
    assert "left out" in seen[-2]
    assert seen[-1] == "httpx: odd"
    seen.clear()
    clock[0] = LIBRARY_SECONDS
    say("uvicorn.error", 1)
    assert seen == [f"uvicorn: {1000 - LIBRARY_LINES} lines were left out of this log", "uvicorn.error: odd"]
