"""Whatever a request's body looks like: no run begins that the quotas did not count."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from http_server import CLASSIC, MODERN, call
from onetool_team.rate_window import RateWindow
from onetool_team.settings import Quotas
from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.program import Program
from stubs import StubEngine
from team.team_bed import Answered, TeamBed, post_bytes, team

pytestmark = pytest.mark.anyio

HOLE = "a-hole-for-a-value"
CALL, LIST = "tools/call", "tools/list"
KINDS = 300

VALUES = {
    "text": '"x"',
    "NaN": "NaN",
    "Infinity": "Infinity",
    "minus Infinity": "-Infinity",
    "beyond a float": "1e999",
    "beneath a float": "-1e999",
    "a number near zero": "1e-400",
    "400 digits": "1" * 400,
    "5000 digits": "1" * 5000,
    "65 bits": str(2**65),
    "minus zero": "-0",
    "a leading zero": "01",
    "a plus sign": "+1",
    "no digit after the point": "1.",
    "hexadecimal": "0x10",
    "an unpaired surrogate": '"\\ud800"',
    "an unpaired surrogate twice": '"\\ud800\\ud800"',
    "a zero character": '"\\u0000"',
    "a control character": '"\x01"',
    "a tab": '"\t"',
    "a line feed": '"\n"',
    "an unknown escape": '"\\x41"',
    "half an escape": '"\\u12"',
    "single quotes": "'x'",
    "a name": "undefined",
    "None": "None",
    "True": "True",
    "a trailing comma": "[1,]",
    "nothing between commas": "[1,,2]",
    "an empty value": "",
    "a comment": "1/* */",
    "a deep list": "[" * 900 + "]" * 900,
    "a deeper list": "[" * 1500 + "]" * 1500,
    "a list that does not end": "[[",
    "a key twice": '{"a":1,"a":2}',
    "a call within": json.dumps(call("1")),
    "a noncharacter": '"\uffff"',
}
"""What may stand where a value stands."""

PLACES: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "nowhere": lambda request: None,
    "meta": lambda request: request["params"].setdefault("_meta", {}).update(x=HOLE),
    "arguments": lambda request: request["params"].setdefault("arguments", {}).update(x=HOLE),
    "params": lambda request: request["params"].update(x=HOLE),
    "the request": lambda request: request.update(x=HOLE),
    "its id": lambda request: request.update(id=HOLE),
    "its version": lambda request: request.update(jsonrpc=HOLE),
    "the tool's name": lambda request: request["params"].update(name=HOLE),
    "the progress token": lambda request: request["params"].setdefault("_meta", {}).update(progressToken=HOLE),
}

SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "method with an escaped slash": lambda text: text.replace("tools/", "tools\\/"),
    "method in escapes": lambda text: text.replace("tools/", "\\u0074\\u006F\\u006fls\\u002f"),
    "key in escapes": lambda text: text.replace('"method"', '"\\u006dethod"'),
    "keys in escapes": lambda text: text.replace('"params"', '"p\\u0061rams"').replace('"name"', '"n\\u0061me"'),
    "key in capitals": lambda text: text.replace('"method"', '"Method"'),
    "method in capitals": lambda text: text.replace(CALL, "Tools/Call"),
    "method with a space": lambda text: text.replace(CALL, f"{CALL} "),
    "method with a zero": lambda text: text.replace(CALL, f"{CALL}\\u0000"),
    "method in full width": lambda text: text.replace(CALL, "tools\uff0fcall"),
    "another method before": lambda text: '{"method":"tools/list",' + text[1:],
    "another method after": lambda text: text[:-1] + ',"method":"tools/list"}',
    "the call's method before": lambda text: '{"method":"tools/call",' + text[1:],
    "the call's method after": lambda text: text[:-1] + ',"method":"tools/call"}',
    "another method after, in escapes": lambda text: text[:-1] + ',"\\u006dethod":"tools\\/list"}',
    "params twice": lambda text: '{"params":null,' + text[1:],
    "no id": lambda text: text.replace('"id": 1,', ""),
    "no version": lambda text: text.replace('"jsonrpc": "2.0",', ""),
    "in a list": lambda text: f"[{text}]",
    "twice in a list": lambda text: f"[{text},{text}]",
    "a list in a list": lambda text: f"[[{text}]]",
    "in a text": json.dumps,
    "in an object": lambda text: f'{{"request":{text}}}',
    "a space before": lambda text: f" \n\t{text}",
    "a form feed before": lambda text: f"\f{text}",
    "a no-break space before": lambda text: f"\u00a0{text}",
    "a mark before": lambda text: f"\ufeff{text}",
    "a guard before": lambda text: f")]}}',\n{text}",
    "a space after": lambda text: f"{text} \r\n",
    "a zero after": lambda text: f"{text}\0",
    "a comma after": lambda text: f"{text},",
    "another after": lambda text: f"{text}{text}",
    "another in the next line": lambda text: f"{text}\n{text}",
    "a comment after": lambda text: f"{text}//",
    "half of it": lambda text: text[: len(text) // 2],
    "without its end": lambda text: text[:-1],
    "nothing": lambda text: "",
    "as an event": lambda text: f"data: {text}\n\n",
    "as a form": lambda text: f"request={text}",
}

ENCODINGS: Mapping[str, Callable[[str], bytes]] = {
    **{
        name: lambda text, name=name: text.encode(name, "surrogatepass" if "utf" in name else "replace")
        for name in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    },
    **{
        name: lambda text, name=name: text.encode(name, "replace")
        for name in ("utf-8-sig", "utf-7", "latin-1", "cp037", "shift_jis")
    },
    "an unpaired surrogate in bytes": lambda text: text.encode("utf-8", "replace").replace(b"1+1", b"1+1#\xed\xa0\x80"),
    "overlong bytes": lambda text: text.encode("utf-8", "replace").replace(b"tools/", b"tools\xc0\xaf"),
    "gzip": lambda text: gzip.compress(text.encode("utf-8", "replace"), mtime=0),
    "deflate": lambda text: zlib.compress(text.encode("utf-8", "replace")),
}

HEADERS: Mapping[str, Mapping[str, str]] = {
    "as they should be": {},
    "no version": {"mcp-protocol-version": ""},
    "the first version": {"mcp-protocol-version": "2024-11-05"},
    "the version of batches": {"mcp-protocol-version": "2025-03-26"},
    "the other era": {"mcp-protocol-version": CLASSIC},
    "a version of the future": {"mcp-protocol-version": "2099-01-01"},
    "another method": {"mcp-method": LIST},
    "no names": {"mcp-method": "", "mcp-name": ""},
    "gzip": {"content-encoding": "gzip"},
    "utf-16": {"content-type": "application/json; charset=utf-16"},
    "plain text": {"content-type": "text/plain"},
    "any answer": {"accept": "*/*"},
    "JSON alone": {"accept": "application/json"},
    "events alone": {"accept": "text/event-stream"},
    "a session": {"mcp-session-id": "1"},
}

CHANGED = ("value", "spelling", "encoding", "headers", "bytes", "parts")
CHANGES = [*itertools.chain.from_iterable(itertools.combinations(CHANGED, number) for number in (1, 2, 3))]


@dataclass(frozen=True)
class Body:
    """One request, and what it was made of."""

    kind: tuple[str, ...]
    parts: tuple[bytes, ...]
    headers: Mapping[str, str]


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Return a valid request of either era with up to three things changed."""
    era, method = draw(st.sampled_from((MODERN, CLASSIC))), draw(st.sampled_from((CALL, CALL, CALL, LIST)))
    request = {**call("1+1", era), "method": method}
    changes = set(draw(st.sampled_from(CHANGES)))

    def choose(change: str, table: Mapping[str, Any]) -> str:
        return draw(st.sampled_from(tuple(table))) if change in changes else next(iter(table))

    place, value = choose("value", PLACES), choose("value", VALUES)
    PLACES[place](request)
    text = json.dumps(request, ensure_ascii=False).replace(f'"{HOLE}"', VALUES[value])
    spelling, encoding, headers = (
        choose("spelling", SPELLINGS),
        choose("encoding", ENCODINGS),
        choose("headers", HEADERS),
    )
    data = ENCODINGS[encoding](SPELLINGS[spelling](text))
    if "bytes" in changes:
        at, put = draw(st.integers(0, len(data))), draw(st.binary(max_size=2))
        data = data[:at] + put + data[at + draw(st.integers(0, 2)) :]
    cut = draw(st.integers(0, len(data))) if "parts" in changes else 0
    parts = (data[:cut], b"", data[cut:]) if "parts" in changes else (data,)
    kind = (era, method, place, value, spelling, encoding, headers, *sorted(changes & {"bytes", "parts"}))
    named = {"mcp-protocol-version": era, "mcp-method": method, "mcp-name": "run", **HEADERS[headers]}
    return Body(kind, parts, named)


class CountedWindow(RateWindow):
    """Counts whom it lets in, which is everybody."""

    admitted = 0

    async def seconds_to_wait(self, principal: str, quotas: Quotas) -> float:
        self.admitted += 1
        return 0.0


@dataclass
class CountingBed:
    """A team's server, how many runs its quotas counted, and how many its engine began."""

    bed: TeamBed
    window: CountedWindow
    engine: StubEngine
    seen: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])

    async def send(self, body: Body) -> tuple[Answered, int, int]:
        """Return the answer, the runs that began and the runs that were counted."""
        began, counted = len(self.engine.programs), self.window.admitted
        answer = await post_bytes(self.bed.app, "ann", body.parts, body.headers)
        return answer, len(self.engine.programs) - began, self.window.admitted - counted


async def _answer(program: Program, reach: Reach) -> Outcome:
    return Outcome(2)


@pytest.fixture(scope="module")
async def counting(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[CountingBed]:
    window, engine = CountedWindow(), StubEngine(_answer)
    async with team(tmp_path_factory.mktemp("counted"), engine=engine, window=window) as bed:
        yield CountingBed(bed, window, engine)


@settings(max_examples=640, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies())
async def test_no_body_begins_a_run_that_was_not_counted(counting: CountingBed, body: Body) -> None:
    answer, began, counted = await counting.send(body)
    counting.seen[body.kind] = began
    assert began <= counted <= 1, (body, answer)


async def test_so_many_kinds_of_bodies_were_sent_and_some_of_them_ran(counting: CountingBed) -> None:
    assert len(counting.seen) >= KINDS, len(counting.seen)
    assert sum(counting.seen.values()) >= 30


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "1" * 400])
async def test_a_number_that_json_does_not_have_is_refused_before_anything_runs(
    counting: CountingBed, era: str, value: str
) -> None:
    text = json.dumps(call("1+1", era, number=7, x=HOLE)).replace(f'"{HOLE}"', value)
    named = {"mcp-protocol-version": era, "mcp-method": CALL, "mcp-name": "run"}
    answer, began, counted = await counting.send(Body((), (text.encode(),), named))
    assert (answer.status, began, counted) == (400, 0, 0)
    assert answer.reply["error"]["code"] == -32700
    assert "JSON" in answer.reply["error"]["message"]
