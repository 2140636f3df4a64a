"""Faults of the area ``config``: a reload of a live server takes a whole configuration, or leaves the old one."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.faults_corpus import fault
from faults.watched import CONFIG, PROCESSES, Watched
from mcp_wire import WireReply
from pace import times_as_slow

Fault = dict[str, Any]
OLD = CONFIG + "projects: {one: /old/one, two: /old/two}\n"
NEW = CONFIG + "projects: {one: /new/one, two: /new/two}\n"
WHICH = "str(proj.one)"
MOST_MS = 1000


@pytest.fixture
def configured(server: Watched) -> Iterator[Watched]:
    """The server with the old configuration, before and after."""
    put(server, OLD)
    yield server
    put(server, OLD)


def put(server: Watched, text: str | bytes) -> None:
    replace(server.place.config, text)
    assert "OK: Configuration reloaded" == server.wire.run("ot.reload()").text
    assert "/old/one" == server.wire.run(WHICH).text


def replace(file: Path, text: str | bytes) -> None:
    """Put *text* in place of the file at once, as a careful editor does."""
    fresh = file.with_suffix(".new")
    fresh.write_bytes(text if isinstance(text, bytes) else text.encode())
    fresh.chmod(0o600)
    fresh.replace(file)


def refused(server: Watched, change: Callable[[], object]) -> WireReply:
    """Return the reply to a reload after *change*, which must be refused in time and change nothing."""
    replies: list[WireReply] = []

    def reload() -> None:
        change()
        replies.append(server.wire.run("ot.reload()"))

    server.survive(reload)
    assert replies[-1].is_error
    taken = replies[-1].meta["ms"]
    assert taken <= MOST_MS or taken <= MOST_MS * times_as_slow()
    assert "/old/one" == server.wire.run(WHICH).texts[0]
    return replies[-1]


def begun(server: Watched, program: str) -> int:
    """Send *program* and return its id once it has its configuration: runs take theirs in the order they come."""
    number = server.wire.send_run(program)
    server.wire.run("1")
    return number


@fault("C01")
def test_reloading_a_hundred_times_disturbs_no_call(configured: Watched, fault: Fault) -> None:
    wire = configured.wire

    def program(nonce: int) -> str:
        return f"x = {WHICH}\nslow.wait(seconds=0.02)\ny = str(proj.two)\n[x, y, {nonce}]"

    def reload_all_the_while() -> None:
        calls: list[tuple[int, int]] = []
        for n, text in zip(range(100), itertools.cycle([NEW, OLD])):
            # Neither the time that a run may take nor a full pool is the subject.
            replace(configured.place.config, text.replace("_seconds: 2", "_seconds: 30"))
            calls += [(n, wire.send_run(program(n)))] if n % 3 == 0 else []
            reload = wire.run("ot.reload()")
            assert not reload.is_error, reload.text
            if len(calls) >= PROCESSES:
                wire.wait(calls[1 - PROCESSES][1])
        answers = {n: wire.wait(number).text for n, number in calls}
        assert 34 == len(answers)
        for n, text in answers.items():
            assert text in (f'["/old/one","/old/two",{n}]', f'["/new/one","/new/two",{n}]')

    configured.survive(reload_all_the_while)


@fault("C01")
def test_a_call_under_way_keeps_the_configuration_it_began_with(configured: Watched, fault: Fault) -> None:
    number = begun(configured, f"x = {WHICH}\nslow.wait(seconds=1)\n[x, str(proj.two)]")
    replace(configured.place.config, NEW)
    assert not configured.wire.run("ot.reload()").is_error
    assert "/new/one" == configured.wire.run(WHICH).text
    assert '["/old/one","/old/two"]' == configured.wire.wait(number).text
    configured.survive(lambda: None)


BROKEN: dict[str, tuple[Callable[[], bytes], int]] = {
    "tab": (lambda: b"limits:\n\trun_seconds: 2\n", 2),
    "doubled key": (lambda: b"version: 1\nlimits: {}\nlimits: {}\n", 3),
    "anchor bomb": (
        lambda: b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d,*a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 31)),
        1,
    ),
    "100 MB": (lambda: b"# comment\n" * 10_000_000, 104858),
    "NUL": (lambda: b"version: 1\nlogs: {level: \0}\n", 2),
    "python object": (lambda: b"version: !!python/object/apply:os.system [id]\n", 1),
}


@fault("C02")
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_by_its_line_and_the_old_configuration_stays(
    configured: Watched, fault: Fault, kind: str
) -> None:
    make, line = BROKEN[kind]
    text = make()
    reply = refused(configured, lambda: replace(configured.place.config, text))
    assert f"onetool.yaml:{line}:" in reply.text


# A mapping in braces: no beginning of it but the empty one is a document of its own.
WHOLE = (
    "{version: 1, limits: {run_seconds: 2, call_seconds: 2, cpu_seconds: 2}, projects: {one: /new/one, two: /new/two}}"
)


@fault("C03")
@pytest.mark.parametrize("written", [0, 1, len(WHOLE) // 2, len(WHOLE) - 1])
def test_a_file_that_is_only_begun_is_refused_and_the_old_configuration_stays(
    configured: Watched, fault: Fault, written: int
) -> None:
    reply = refused(configured, lambda: configured.place.config.write_text(WHOLE[:written]))
    assert "onetool.yaml" in reply.text


@fault("C03")
def test_a_writer_that_never_rests_is_seen_whole_or_not_at_all(configured: Watched, fault: Fault) -> None:
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            with configured.place.config.open("r+") as file:
                file.write(WHOLE[:40])
                file.truncate()
                file.flush()
                file.write(WHOLE[40:])

    def reload_meanwhile() -> None:
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(50):
                configured.wire.run("ot.reload()")
                assert configured.wire.run(WHICH).texts[0] in ("/old/one", "/new/one")
        finally:
            done.set()
            writer.join(10)
        configured.wire.run("ot.reload()")  # else the next reply may still say that what it saw was malformed

    configured.place.config.write_text(WHOLE)
    configured.survive(reload_meanwhile)


@fault("C04")
def test_what_a_policy_takes_away_is_still_there_for_the_call_that_uses_it(configured: Watched, fault: Fault) -> None:
    number = begun(configured, "slow.wait(seconds=1, nonce='through')")
    replace(configured.place.config, OLD + "policy: {deny: ['slow.*']}\n")
    assert not configured.wire.run("ot.reload()").is_error
    denied = configured.wire.run("slow.wait(seconds=0)")
    assert denied.is_error
    assert "PermissionError" in denied.text
    assert "through" == configured.wire.wait(number).text
    configured.survive(lambda: None)


NAP = """\
import time

pack = "leaving"


def nap(seconds: float, nonce: str) -> str:
    time.sleep(seconds)
    return nonce
"""


@fault("C04")
def test_a_pack_that_is_removed_ends_its_calls_and_then_its_worker(configured: Watched, fault: Fault) -> None:
    file = configured.place.home / ".onetool" / "tools" / "leaving" / "leaving_tools.py"
    file.parent.mkdir(parents=True)
    file.write_text(NAP)
    assert not configured.wire.run("ot.reload()").is_error
    assert "first" == configured.wire.run("leaving.nap(seconds=0, nonce='first')").text
    number = begun(configured, "leaving.nap(seconds=1, nonce='through')")
    shutil.rmtree(file.parent.parent)
    assert not configured.wire.run("ot.reload()").is_error
    assert "NameError" in configured.wire.run("leaving.nap(seconds=0, nonce='again')").text
    assert "through" == configured.wire.wait(number).text
    configured.survive(lambda: None)


@pytest.fixture
def with_secrets(configured: Watched) -> Iterator[Watched]:
    """The same; the secrets file is put back afterwards."""
    text = configured.place.secrets.read_bytes()
    yield configured
    replace(configured.place.secrets, text)


@fault("C05")
def test_secrets_that_vanish_do_not_stop_the_server(with_secrets: Watched, fault: Fault) -> None:
    with_secrets.place.secrets.unlink()
    with_secrets.run("ot.reload()")
    assert "/old/one" == with_secrets.run(WHICH).text


@fault("C05")
def test_secrets_that_a_setting_needs_and_that_vanish_keep_the_old_configuration(
    with_secrets: Watched, fault: Fault
) -> None:
    put(with_secrets, OLD + "tools: {brave: {key: '${FAULTS_ONLY_IN_FILE:-none}'}}\n")

    def vanish() -> None:
        with_secrets.place.secrets.unlink(missing_ok=True)
        replace(with_secrets.place.config, OLD + "tools: {brave: {key: '${FAULTS_ONLY_IN_FILE}'}}\n")

    assert "FAULTS_ONLY_IN_FILE" in refused(with_secrets, vanish).text


@fault("C05")
def test_secrets_that_others_may_read_are_refused_or_warned_about(with_secrets: Watched, fault: Fault) -> None:
    with_secrets.place.secrets.chmod(0o644)
    reply = with_secrets.run("ot.reload()")
    told = reply.text if reply.is_error else with_secrets.run("ot.health()").text
    assert "secrets.yaml" in told
    assert "chmod" in told
    assert "/old/one" == with_secrets.run(WHICH).text


INCLUDES = {
    "itself": {"onetool.yaml": "include: [onetool.yaml]\n"},
    "a circle": {
        "onetool.yaml": "include: [a.yaml]\n",
        "a.yaml": "include: [b.yaml]\n",
        "b.yaml": "include: [a.yaml]\n",
    },
    "a long chain": {
        "onetool.yaml": "include: [f0.yaml]\n",
        **{f"f{n}.yaml": f"include: [f{n + 1}.yaml]\n" for n in range(200)},
        "f200.yaml": "version: 1\n",
    },
}


@fault("C06")
@pytest.mark.parametrize("shape", INCLUDES)
def test_files_that_include_without_end_are_refused(configured: Watched, fault: Fault, shape: str) -> None:
    directory = configured.place.config.parent
    extra = [directory / name for name in INCLUDES[shape] if name != "onetool.yaml"]

    def include() -> None:
        for name, text in INCLUDES[shape].items():
            replace(directory / name, text)

    configured.expect_files(set(extra))
    try:
        reply = refused(configured, include)
    finally:
        for file in extra:
            file.unlink(missing_ok=True)
    assert ".yaml:1:" in reply.text
