"""What every ledger does, of calls and of background runs: here that of one user, and those of plugins in theirs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ledger.ledger_beds import BOB, LedgerBed, background, effect
from ot.errors import LedgerUnavailable, RunFenced, TooManyRuns
from ot.execution.ledger import Effect, HowEnded
from ot.ledger.background_run import RunEnd
from ot.ledger.run_book import Beat, KeptLedger, Start

pytestmark = pytest.mark.anyio

ASKED = {"number": 7, "message": "Pay?"}
YES = {"action": "accept"}
DONE = RunEnd("done", 2e9, ("5 paid",), handle="h1")


async def states(ledger: KeptLedger, run: str = "r1", principal: str = "ada") -> list[str]:
    return [entry.state for entry in await ledger.of_run(principal, run)]


async def begun(bed: LedgerBed, ledger: KeptLedger | None = None, **of: Any) -> Start:
    """Return the first start of a new run."""
    await bed.ledger.add(background(**of), 10)
    start = await (ledger or bed.ledger).begin(of.get("id", "b1"))
    assert start
    return start


# ---------------------------------------------------------------- calls


async def test_a_call_is_there_when_it_may_be_sent_and_its_end_follows(bed: LedgerBed) -> None:
    assert await bed.ledger.send(effect()) is None
    assert ["sent"] == await states(bed.ledger)
    bed.ledger.record_end(effect(), "done")
    (entry,) = await bed.ledger.of_run("ada", "r1")
    assert ("r1", 1, "bank.pay", 3, "done", 0) == (
        entry.run, entry.call, entry.tool, entry.line, entry.state, entry.start
    )  # fmt: skip
    assert bed.now == pytest.approx(entry.at, abs=1e-3)
    assert bed.now == pytest.approx(entry.ended, abs=1e-3)


async def test_a_call_has_the_key_that_it_came_with_or_one_made_of_its_run(bed: LedgerBed) -> None:
    await bed.ledger.send(effect())
    await bed.ledger.send(replace(effect(call=2, amount=6), given_key="theirs"))
    assert ["r1-1", "theirs"] == [entry.key for entry in await bed.ledger.of_run("ada", "r1")]


async def test_once_it_is_settled_another_process_knows_how_calls_ended(bed: LedgerBed) -> None:
    other = bed.process()
    for call in range(20):
        await bed.ledger.send(effect(call=call, amount=call))
        bed.ledger.record_end(effect(call=call, amount=call), "done")
    await bed.ledger.settle()
    assert ["done"] * 20 == await states(other)


async def test_calls_are_told_in_the_order_in_which_they_were_made(bed: LedgerBed) -> None:
    for call in (3, 1, 2):
        bed.now += 1
        await bed.ledger.send(effect(call=call))
        bed.ledger.record_end(effect(call=call), "done")
    assert [3, 1, 2] == [entry.call for entry in await bed.ledger.of_run("ada", "r1")]


async def test_the_same_call_is_noticed_after_one_whose_effect_is_unknown(bed: LedgerBed) -> None:
    await bed.ledger.send(effect())
    bed.ledger.record_end(effect(), "unknown")
    found = await bed.ledger.send(effect("r2"))
    assert found
    assert ("r1", 3) == (found.run_id, found.line)
    assert bed.now == pytest.approx(found.at, abs=1e-3)
    assert [] == await states(bed.ledger, "r2"), "nothing is written"
    assert await bed.ledger.send(effect("r2"), again=True) is None
    assert ["sent"] == await states(bed.ledger, "r2")


async def test_of_several_the_latest_is_told(bed: LedgerBed) -> None:
    for n in range(1, 4):
        bed.now += 10
        await bed.ledger.send(effect(f"r{n}"), again=True)
        bed.ledger.record_end(effect(f"r{n}"), "unknown")
    found = await bed.ledger.send(effect("r9"))
    assert found
    assert "r3" == found.run_id


@pytest.mark.parametrize("how", ["done", "failed"])
async def test_what_ended_is_not_asked_about(bed: LedgerBed, how: HowEnded) -> None:
    await bed.ledger.send(effect())
    bed.ledger.record_end(effect(), how)
    assert await bed.ledger.send(effect("r2")) is None
    assert [how] == await states(bed.ledger)
    assert [] == await bed.ledger.unknown("ada")


@pytest.mark.parametrize("other", [effect("r2", amount=6), effect("r2", caller=BOB)], ids=["arguments", "principal"])
async def test_another_call_is_not_the_same(bed: LedgerBed, other: Effect) -> None:
    await bed.ledger.send(effect())
    bed.ledger.record_end(effect(), "unknown")
    assert await bed.ledger.send(other) is None


async def test_a_call_whose_arguments_the_tool_has_changed_ends_all_the_same(bed: LedgerBed) -> None:
    items = [1]
    sent = effect(items=items)
    await bed.ledger.send(sent)
    items.append(2)
    bed.ledger.record_end(sent, "done")
    await bed.aclose()
    other = bed.process()
    assert await other.send(effect("r2", items=[1])) is None, "the writer is gone, but it had said that it was done"


async def test_a_day_later_the_same_call_is_not_asked_about_any_more(bed: LedgerBed) -> None:
    await bed.ledger.send(effect())
    bed.ledger.record_end(effect(), "unknown")
    bed.now += 23 * 3600
    assert await bed.ledger.send(effect("r2")) is not None
    bed.now += 2 * 3600
    assert await bed.ledger.send(effect("r2")) is None


async def test_what_a_process_that_ended_had_sent_is_unknown_and_what_a_living_one_sends_is_not(bed: LedgerBed) -> None:
    other = bed.process()
    await other.send(effect())
    assert ["sent"] == await states(bed.ledger)
    assert await bed.ledger.send(effect("r2")) is None, "the other is still at it"
    bed.ledger.record_end(effect("r2"), "done")
    await other.aclose()
    assert ["unknown"] == await states(bed.ledger)
    found = await bed.ledger.send(effect("r3"))
    assert found
    assert "r1" == found.run_id


async def test_unknown_calls_are_told_the_latest_first_and_what_is_under_way_does_not_count(bed: LedgerBed) -> None:
    for n in range(5):
        bed.now += 1
        await bed.ledger.send(effect(f"u{n}", amount=n))
        bed.ledger.record_end(effect(f"u{n}", amount=n), "unknown")
    for n in range(5):
        bed.now += 1
        await bed.ledger.send(effect("alive", n, amount=10 + n))
    assert ["u4", "u3", "u2"] == [entry.run for entry in await bed.ledger.unknown("ada", 3)]
    assert 5 == len(await bed.ledger.unknown("ada"))


async def test_nobody_reads_the_calls_of_another(bed: LedgerBed) -> None:
    await bed.ledger.send(effect())
    bed.ledger.record_end(effect(), "unknown")
    assert [] == await states(bed.ledger, principal="bob")
    assert [] == await bed.ledger.unknown("bob")
    assert ["r1"] == [entry.run for entry in await bed.ledger.unknown("ada")]


async def test_a_call_is_not_written_twice(bed: LedgerBed) -> None:
    await bed.ledger.send(effect())
    with pytest.raises(LedgerUnavailable):
        await bed.ledger.send(effect())


async def test_what_was_never_written_down_does_not_end(bed: LedgerBed) -> None:
    bed.ledger.record_end(effect(), "done")
    assert [] == await states(bed.ledger)


async def test_many_calls_of_two_processes_are_all_there(bed: LedgerBed) -> None:
    other = bed.process()
    writers = [bed.ledger, other] * 150
    made = [(writer, effect(call=n, amount=n)) for n, writer in enumerate(writers)]
    await asyncio.gather(*(writer.send(one) for writer, one in made))
    for writer, one in made:
        writer.record_end(one, "done")
    await other.of_run("ada", "r1")
    assert ["done"] * 300 == await states(bed.ledger)


async def test_a_run_of_any_name_is_kept_apart_from_others(bed: LedgerBed) -> None:
    for name in ("r1:*", "a b", "ü", "r" * 500):
        await bed.ledger.send(effect(name, amount=len(name)))
        assert ["sent"] == await states(bed.ledger, name)
    assert [] == await states(bed.ledger, "r1")


# ---------------------------------------------------------------- background runs: starts


async def test_a_run_waits_begins_and_ends(bed: LedgerBed) -> None:
    run = background()
    await bed.ledger.add(run, 10)
    status = await bed.ledger.status("ada", "b1")
    assert status
    assert (run, "waiting", 0, None, False, None) == (
        status.run, status.state, status.starts, status.question, status.cancelled, status.end
    )  # fmt: skip
    start = await bed.ledger.begin("b1")
    assert start == Start(run, 1, effects=[])
    assert (status := await bed.ledger.status("ada", "b1"))
    assert ("running", 1) == (status.state, status.starts)
    assert await bed.ledger.beat("b1", 1) == Beat()
    assert await bed.ledger.end("b1", 1, DONE)
    assert (status := await bed.ledger.status("ada", "b1"))
    assert ("done", DONE) == (status.state, status.end)


async def test_nobody_begins_a_run_that_is_not_there(bed: LedgerBed) -> None:
    assert await bed.ledger.begin("nothing") is None
    assert await bed.ledger.status("ada", "nothing") is None
    assert await bed.ledger.cancel("ada", "nothing") is None
    assert (await bed.ledger.beat("nothing", 1)).fenced
    assert not await bed.ledger.end("nothing", 1, DONE)


async def test_of_two_that_begin_at_once_one_goes_on(bed: LedgerBed) -> None:
    await bed.ledger.add(background(), 10)
    starts = await asyncio.gather(*(ledger.begin("b1") for ledger in (bed.ledger, bed.process(), bed.process())))
    assert [0, 0, 1] == sorted(start.number for start in starts if start)
    assert 2 == sum(start.alive for start in starts if start)


async def test_while_a_start_beats_nobody_takes_its_place_and_when_its_lease_is_over_somebody_may(
    bed: LedgerBed,
) -> None:
    await begun(bed)
    other = bed.process()
    assert (start := await other.begin("b1"))
    assert start.alive
    await bed.let_the_lease_pass("b1")
    await bed.ledger.beat("b1", 1)
    assert (start := await other.begin("b1"))
    assert start.alive, "it has beaten again"
    await bed.let_the_lease_pass("b1")
    assert (start := await other.begin("b1"))
    assert (2, False) == (start.number, start.alive)


async def test_when_its_process_has_ended_another_start_begins_at_once(bed: LedgerBed) -> None:
    other = bed.process()
    await begun(bed, other)
    await other.aclose()
    assert (start := await bed.ledger.begin("b1"))
    assert 2 == start.number


async def test_a_start_whose_place_was_taken_can_do_nothing_more(bed: LedgerBed) -> None:
    await begun(bed)
    other = bed.process()
    await bed.let_the_lease_pass("b1")
    await other.begin("b1")
    assert await bed.ledger.beat("b1", 1) == Beat(fenced=True)
    with pytest.raises(RunFenced):
        await bed.ledger.send(effect("b1", start=1))
    with pytest.raises(RunFenced):
        await bed.ledger.send(effect("b1", start=1), again=True)
    with pytest.raises(RunFenced):
        await bed.ledger.ask("b1", 1, ASKED)
    assert not await bed.ledger.end("b1", 1, DONE)
    assert [] == await states(bed.ledger, "b1")
    assert await other.send(effect("b1", start=2)) is None
    assert await other.end("b1", 2, RunEnd("stopped", 2e9))
    assert (status := await bed.ledger.status("ada", "b1"))
    assert "stopped" == status.state


async def test_a_fenced_start_is_told_so_even_if_the_same_call_is_unknown(bed: LedgerBed) -> None:
    await bed.ledger.send(effect())
    bed.ledger.record_end(effect(), "unknown")
    await begun(bed)
    await bed.ledger.end("b1", 1, DONE)
    with pytest.raises(RunFenced):
        await bed.ledger.send(effect("b1", start=1))


async def test_a_run_that_has_ended_sends_nothing_and_is_not_begun_again(bed: LedgerBed) -> None:
    await begun(bed)
    await bed.ledger.end("b1", 1, DONE)
    with pytest.raises(RunFenced):
        await bed.ledger.send(effect("b1", start=1))
    assert not await bed.ledger.end("b1", 1, RunEnd("failed", 3e9))
    assert (start := await bed.process().begin("b1"))
    assert start.number == 0
    assert start.end
    assert ("done", "h1") == (start.end.state, start.end.handle)


async def test_the_next_start_learns_what_the_earlier_ones_did_with_the_values(bed: LedgerBed) -> None:
    other = bed.process()
    await begun(bed, other)
    ends: list[tuple[int, HowEnded, Any]] = [(1, "done", {"id": 17}), (2, "failed", None)]
    for call, how, value in ends:
        await other.send(effect("b1", call, start=1, amount=call))
        other.record_end(effect("b1", call, start=1, amount=call), how, value)
    await other.send(effect("b1", 3, start=1, amount=3))
    await other.aclose()
    assert (start := await bed.ledger.begin("b1"))
    assert [(1, "done", {"id": 17}), (2, "failed", None), (3, "unknown", None)] == [
        (entry.call, entry.state, entry.value) for entry in start.effects
    ]
    assert [1, 1, 1] == [entry.start for entry in start.effects]


async def test_calls_of_two_starts_are_told_apart(bed: LedgerBed) -> None:
    other = bed.process()
    await begun(bed, other)
    await other.send(effect("b1", start=1))
    other.record_end(effect("b1", start=1), "failed")
    await other.aclose()
    await bed.ledger.begin("b1")
    assert await bed.ledger.send(effect("b1", start=2)) is None
    assert [(1, "failed"), (2, "sent")] == [(one.start, one.state) for one in await bed.ledger.of_run("ada", "b1")]


async def test_the_packs_of_the_first_start_are_told_to_the_later_ones(bed: LedgerBed) -> None:
    await begun(bed)
    assert {"bank": "v1"} == await bed.ledger.use_packs("b1", 1, {"bank": "v1"})
    await bed.let_the_lease_pass("b1")
    other = bed.process()
    await other.begin("b1")
    assert {"bank": "v1"} == await other.use_packs("b1", 2, {"bank": "v2"})
    with pytest.raises(RunFenced):
        await bed.ledger.use_packs("b1", 1, {"bank": "v1"})


# ---------------------------------------------------------------- background runs: questions and cancelling


async def test_a_question_waits_for_the_answer_of_its_own_principal_and_one_counts(bed: LedgerBed) -> None:
    await begun(bed)
    await bed.ledger.ask("b1", 1, ASKED)
    assert await bed.ledger.beat("b1", 1) == Beat()
    other = bed.process()
    assert (status := await other.status("ada", "b1"))
    assert ("asks", ASKED) == (status.state, status.question)
    assert not await other.answer("bob", "b1", 7, YES)
    assert not await other.answer("ada", "b1", 8, YES)
    assert await other.answer("ada", "b1", 7, YES)
    assert (status := await other.status("ada", "b1"))
    assert ("running", None) == (status.state, status.question), "nobody is to put it again"
    assert not await other.answer("ada", "b1", 7, {"action": "decline"}), "it was answered"
    assert (status := await other.status("ada", "b1"))
    assert ("running", None) == (status.state, status.question), "nobody else need answer it"
    assert await bed.ledger.beat("b1", 1) == Beat(answer=YES)
    await bed.ledger.ask("b1", 1, None)
    assert await bed.ledger.beat("b1", 1) == Beat()
    assert (status := await other.status("ada", "b1"))
    assert ("running", None) == (status.state, status.question)
    assert not await other.answer("ada", "b1", 7, YES), "nothing is asked"


async def test_the_next_question_has_no_answer_yet_and_the_next_start_no_question(bed: LedgerBed) -> None:
    await begun(bed)
    await bed.ledger.ask("b1", 1, ASKED)
    await bed.ledger.answer("ada", "b1", 7, YES)
    await bed.ledger.ask("b1", 1, {**ASKED, "number": 8})
    assert await bed.ledger.beat("b1", 1) == Beat()
    await bed.let_the_lease_pass("b1")
    other = bed.process()
    await other.begin("b1")
    assert (status := await other.status("ada", "b1"))
    assert ("running", None) == (status.state, status.question)
    assert not await other.answer("ada", "b1", 8, YES)


async def test_one_that_waits_has_ended_when_it_is_cancelled(bed: LedgerBed) -> None:
    await bed.ledger.add(background(), 1)
    assert (status := await bed.process().cancel("ada", "b1"))
    assert ("cancelled", True) == (status.state, status.cancelled)
    assert status.end
    assert (start := await bed.ledger.begin("b1"))
    assert start.end
    assert "cancelled" == start.end.state
    assert [] == await bed.ledger.list_left_behind()
    await bed.ledger.add(background("b2"), 1)


async def test_one_that_has_begun_learns_with_its_beat_that_it_is_cancelled(bed: LedgerBed) -> None:
    await begun(bed)
    assert (status := await bed.process().cancel("ada", "b1"))
    assert ("running", True, None) == (status.state, status.cancelled, status.end)
    assert await bed.ledger.beat("b1", 1) == Beat(cancelled=True)
    await bed.let_the_lease_pass("b1")
    assert (start := await bed.process().begin("b1"))
    assert start.cancelled
    assert await bed.ledger.end("b1", 1, DONE) is False


async def test_one_that_has_ended_is_not_cancelled(bed: LedgerBed) -> None:
    await begun(bed)
    await bed.ledger.end("b1", 1, DONE)
    assert (status := await bed.ledger.cancel("ada", "b1"))
    assert ("done", False) == (status.state, status.cancelled)


async def test_nobody_sees_or_ends_the_runs_of_another(bed: LedgerBed) -> None:
    await begun(bed)
    assert await bed.ledger.status("bob", "b1") is None
    assert await bed.ledger.cancel("bob", "b1") is None
    assert [] == await bed.ledger.runs("bob")
    assert await bed.ledger.beat("b1", 1) == Beat()


async def test_calls_and_runs_are_told_for_all_directories_or_for_one(bed: LedgerBed) -> None:
    for n, place in enumerate(("/a", "/b", "/b")):
        bed.now += 1
        call = replace(effect("r1", n, amount=n), directory=place)
        await bed.ledger.send(call)
        bed.ledger.record_end(call, "unknown")
        await bed.ledger.add(replace(background(f"b{n}", created=bed.now), directory=place), 10)
    for place, calls, runs in ((None, [0, 1, 2], ["b2", "b1", "b0"]), ("/b", [1, 2], ["b2", "b1"]), ("/c", [], [])):
        assert calls == [entry.call for entry in await bed.ledger.of_run("ada", "r1", place)]
        assert calls[::-1] == [entry.call for entry in await bed.ledger.unknown("ada", directory=place)]
        assert runs == [status.run.id for status in await bed.ledger.runs("ada", directory=place)]
    assert ["/a", "/b", "/b"] == [entry.directory for entry in await bed.ledger.of_run("ada", "r1")]


async def test_runs_are_told_the_latest_first(bed: LedgerBed) -> None:
    for n in range(4):
        await bed.ledger.add(background(f"b{n}", created=bed.now + n), 10)
    await bed.ledger.begin("b1")
    assert [("b3", "waiting"), ("b2", "waiting"), ("b1", "running")] == [
        (status.run.id, status.state) for status in await bed.process().runs("ada", 3)
    ]


async def test_a_principal_has_so_many_open_runs_and_no_more(bed: LedgerBed) -> None:
    await bed.ledger.add(background("b1"), 2)
    await bed.ledger.add(background("b2"), 2)
    with pytest.raises(TooManyRuns):
        await bed.ledger.add(background("b3"), 2)
    await bed.ledger.add(background("other", principal="bob"), 2)
    await bed.ledger.begin("b1")
    await bed.ledger.end("b1", 1, DONE)
    await bed.ledger.add(background("b3"), 2)
    assert ["b3", "b2", "b1"] == sorted((status.run.id for status in await bed.ledger.runs("ada")), reverse=True)


async def test_a_run_is_added_once(bed: LedgerBed) -> None:
    await bed.ledger.add(background(), 10)
    with pytest.raises(LedgerUnavailable):
        await bed.ledger.add(background(), 10)


async def test_what_nobody_alive_carries_out_is_left_behind(bed: LedgerBed) -> None:
    other = bed.process()
    for id in ("dead", "silent", "alive", "ended"):
        await begun(bed, other if id == "dead" else bed.ledger, id=id)
    await bed.ledger.end("ended", 1, DONE)
    assert [] == await bed.ledger.list_left_behind()
    await other.aclose()
    await bed.let_the_lease_pass("silent")
    await bed.ledger.beat("alive", 1)
    assert ["dead", "silent"] == sorted(await bed.ledger.list_left_behind())
