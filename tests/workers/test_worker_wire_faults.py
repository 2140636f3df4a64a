"""What workers write where they should not; no reply is ever another call's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from workers.corpus_faults import Fault, fault
from workers.watched_workers import LONG_CONFIG, WatchedWorkers

MB = 1 << 20


@fault("W04")
def test_what_a_tool_prints_goes_beside_its_value(server: WatchedWorkers, fault: Fault) -> None:
    reply = server.run("faulty.say(text='hello', value='mine')")
    assert ["hello", "mine"] == [text.strip() for text in reply.texts]


@fault("W05")
def test_a_forged_reply_reaches_nobody(server: WatchedWorkers, fault: Fault) -> None:
    reply = server.run("faulty.forge(value='REAL')")
    assert "REAL" == reply.texts[-1]
    assert "SPOOFED" not in server.wire.run("faulty.echo(nonce='next')").text


@fault("W06")
def test_bytes_on_standard_output_from_python_c_and_a_child_reach_nobody(server: WatchedWorkers, fault: Fault) -> None:
    junk = b'junk\n{"jsonrpc":"2.0","id":1,"result":{}}\n'.hex()
    assert "REAL" == server.run(f"faulty.raw(hex='{junk}', value='REAL')").texts[-1]


@fault("W08")
@pytest.mark.parametrize(
    "junk", [b"\xff\xfe\x00\n", b"{}\n[]\nnull\n", b"[" * 100_000 + b"\n", b'{"id":{}}\n', b"NaN\n"]
)
def test_bytes_on_the_wire_itself_that_are_no_message_are_skipped(
    server: WatchedWorkers, junk: bytes, fault: Fault
) -> None:
    assert "REAL" == server.run(f"faulty.on_wire(hex='{junk.hex()}', value='REAL')").texts[-1]


@fault("W10")
def test_a_reply_may_come_byte_by_byte(server: WatchedWorkers, fault: Fault) -> None:
    value = "é" * 200
    assert value == server.run(f"faulty.bytewise(value='{value}')").text
    assert "back" == server.run("faulty.bytewise(value='back', on=False)").text


@fault("W12")
def test_a_flood_on_standard_error_is_drained(server: WatchedWorkers, fault: Fault) -> None:
    assert "done" == server.run(f"faulty.flood(size={20 * MB}, value='done')").text


@fault("W13")
def test_a_flood_without_lines_is_drained_too(server: WatchedWorkers, fault: Fault) -> None:
    assert "done" == server.run(f"faulty.flood(size={20 * MB}, hex='00', value='done')").text


@fault("W12", "W13")
def test_the_last_words_of_a_flood_are_in_the_error(server: WatchedWorkers, fault: Fault) -> None:
    reply = server.run(f"[faulty.flood(size={MB}, hex='776f7264'), faulty.kill()]")
    assert "word" in reply.text and len(reply.text) < 4_000


@fault("W36")
def test_a_thread_that_talks_on_after_its_call_disturbs_no_other(server: WatchedWorkers, fault: Fault) -> None:
    assert "mine" == server.run("faulty.talk_on(value='mine')").texts[-1]
    for number in range(20):
        assert f"n{number}" == server.wire.run(f"faulty.echo(nonce='n{number}')").text
    server.run("faulty.kill()")


@fault("W35", "W01")
@pytest.mark.parametrize("how", ["return", "raise", "die"])
def test_a_secret_leaves_by_no_way(server: WatchedWorkers, how: str, fault: Fault) -> None:
    reply = server.run(f"faulty.leak(how='{how}')")
    assert "canary" not in reply.raw_line.decode()


@fault("W37")
def test_eight_callers_get_their_own_answers(server: WatchedWorkers, fault: Fault) -> None:
    def crowd() -> None:
        numbers = {
            n: server.wire.send_run(f"[faulty.echo(nonce='{n}-{{}}'.format(i)) for i in range(50)]") for n in range(8)
        }
        for n, number in numbers.items():
            reply = server.wire.wait(number, 20)
            assert not reply.is_error, reply.text
            assert "[" + ",".join(f'"{n}-{i}"' for i in range(50)) + "]" == reply.text

    server.survive(crowd)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedWorkers]:
    """A server that gives a run time to write much."""
    config = LONG_CONFIG + "snippets: {hello: {body: '1'}}\n"
    with WatchedWorkers.started(tmp_path_factory.mktemp("patient"), config) as watched:
        yield watched


@fault("W09", repetitions=5)
def test_a_value_of_a_gigabyte_is_stored_and_not_read_into_the_server(patient: WatchedWorkers, fault: Fault) -> None:
    """A program gets an error that names the handle; the worker puts up to 1 GiB into a file, more is refused."""
    size = 1 << 27
    replies: list[str] = []
    grown = patient.peak_growth_mb(lambda: replies.append(patient.wire.run(f"faulty.large(size={size})").text))
    assert f"{size:,} bytes" in replies[0] and "ot.result(handle=" in replies[0]
    assert grown <= 128
    patient.survive(lambda: None)
    assert [] == list((patient.place.home / ".onetool" / "spool").rglob("taken-*"))


@pytest.mark.soak
def test_a_value_of_a_whole_gigabyte_is_stored(patient: WatchedWorkers) -> None:
    replies: list[str] = []
    program = f"faulty.large(size={1 << 30})"
    grown = patient.peak_growth_mb(lambda: replies.append(patient.wire.run(program, timeout=60).text))
    assert f"{1 << 30:,} bytes" in replies[0] and "ot.result(handle=" in replies[0]
    assert grown <= 128
