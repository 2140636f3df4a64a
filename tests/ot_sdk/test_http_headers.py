"""When a service that refuses says to come back."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ot_sdk
from ot_sdk.http_headers import LONGEST, retry_seconds


def read(text: str) -> float | None:
    return retry_seconds({"retry-after": text})


def test_the_wait_is_seconds_or_a_date_and_at_most_a_day() -> None:
    assert [read(text) for text in ("7", " 0 ", "1.5", "2.", "31536000", "9" * 400)] == [7, 0, 1.5, 2, LONGEST, LONGEST]
    in_a_minute = time.time() + 60
    for text in (formatdate(in_a_minute, usegmt=True), time.asctime(time.gmtime(in_a_minute))):
        assert 30 < (read(text) or 0) <= 60
    assert retry_seconds({}) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-1",
        "+1",
        "1e3",
        "inf",
        "nan",
        "0x10",
        "1_000",
        "²",
        "٣",
        "7 s",
        "Thu, \u0660\u0661 Jan 2026 0:0:0 GMT",
        f"Thu, 01 Jan 2026 0:0:0 +{9:9>21}",
    ],
)
def test_a_malformed_wait_is_none(text: str) -> None:
    assert read(text) is None


@given(st.text() | st.text(alphabet="0123456789 :,.+-GMTJanFri²") | st.from_regex(r"[A-Z][a-z]{2}, .*", fullmatch=True))
def test_whatever_the_header_says_the_wait_is_within_a_day_or_none(text: str) -> None:
    found = read(text)
    assert found is None or 0 <= found <= LONGEST


@given(st.floats(0, 1e12, allow_nan=False))
def test_a_number_of_seconds_is_read_as_it_was_written(seconds: float) -> None:
    text = f"{seconds:.3f}"
    assert read(text) == min(float(text), LONGEST)


@given(st.datetimes(datetime(1994, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_a_date_is_now_or_within_a_day_or_a_day_away(date: datetime) -> None:
    away = date.timestamp() - time.time()
    found = read(format_datetime(date, usegmt=True))
    assert found is not None
    assert abs(found - min(max(away, 0), LONGEST)) < 30


def test_the_header_is_read_in_this_one_place() -> None:
    sources = Path(ot_sdk.__file__).parents[1].rglob("*.py")
    reading = [file.name for file in sources if 'get("retry-after' in file.read_text(encoding="utf-8").lower()]
    assert reading == ["http_headers.py"]
