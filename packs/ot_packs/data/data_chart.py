"""Charts: a Vega-Lite specification of rows, drawn by vl-convert without a network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import vl_convert

Kind = Literal["bar", "line", "area", "scatter", "pie"]
KINDS: tuple[str, ...] = get_args(Kind)
MARKS = {"scatter": {"type": "point", "filled": True}, "line": {"type": "line", "point": True}, "pie": {"type": "arc"}}
MAX_POINTS = 5000
MAX_SERIES = 30
MAX_LABELS = 200
SIZES = range(100, 2001)
SCALE = 1.5
NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "DECIMAL"),
)
TIMES = ("DATE", "TIMESTAMP")
OFFSET = re.compile(r"[+-]\d\d:\d\d$")


@dataclass(frozen=True)
class ChartPlan:
    """What is drawn: rows with ``x``, ``y`` and perhaps ``series``, and what the axes are called."""

    kind: str
    rows: Sequence[Mapping[str, Any]]
    x_type: str
    x_title: str
    y_title: str
    series_title: str = ""
    title: str = ""
    width: int = 640
    height: int = 400

    def check(self) -> None:
        """Return when it can be drawn.

        Raises:
            ValueError: It cannot; the text says why.
        """
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.width not in SIZES or self.height not in SIZES:
            raise ValueError(f"width and height are {SIZES[0]} to {SIZES[-1]} pixels")
        if not self.rows:
            raise ValueError("there are no rows to draw")
        if self.kind == "pie" and any(row["y"] < 0 for row in self.rows):
            raise ValueError(f"{self.y_title} has numbers below 0, which no slice of a pie can show: draw bars")
        if len(self.rows) > MAX_POINTS:
            raise ValueError(f"there are more than {MAX_POINTS:,} points: group them by data.query first")
        if len({row.get("series") for row in self.rows}) > MAX_SERIES:
            raise ValueError(f"there are more than {MAX_SERIES} series: leave some out by data.query first")
        labels = len({str(row["x"]) for row in self.rows})
        if self.x_type == "nominal" and labels > (MAX_SERIES if self.kind == "pie" else MAX_LABELS):
            raise ValueError(f"{self.x_title} has {labels:,} different values: group them by data.query first")

    def png(self) -> bytes:
        """Return the picture."""
        self.check()
        return vl_convert.vegalite_to_png(self.specification(), scale=SCALE, allowed_base_urls=[])

    def specification(self) -> dict[str, Any]:
        """Return it as Vega-Lite; names of columns are only titles there, so that none has a meaning."""
        parts = self._pie() if self.kind == "pie" else self._axes()
        return {
            "title": {"text": self.title} if self.title else "",
            "data": {"values": [{**row, "x": self._moment(row["x"])} for row in self.rows]},
            "mark": MARKS.get(self.kind, {"type": self.kind}),
            "encoding": parts,
            "width": self.width,
            "height": self.height,
            "background": "white",
        }

    def _pie(self) -> dict[str, Any]:
        return {
            "theta": {"field": "y", "type": "quantitative", "stack": True},
            "color": {"field": "x", "type": "nominal", "title": self.x_title, "sort": None},
        }

    def _axes(self) -> dict[str, Any]:
        x: dict[str, Any] = {"field": "x", "type": self.x_type, "title": self.x_title}
        if self.x_type == "temporal":
            x["scale"] = {"type": "utc"}
        elif self.x_type == "quantitative":
            if all(isinstance(row["x"], int) for row in self.rows):
                x["axis"] = {"format": "d", "tickMinStep": 1}  # a year is 2010, not 2,010
        else:
            x |= {"sort": None, "axis": {"labelAngle": -45 if self._has_long_labels() else 0}}
        y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": self.y_title}
        if self.kind in ("line", "scatter"):
            y["scale"] = {"zero": False}
        if self.kind == "scatter" and self.x_type == "quantitative":
            x["scale"] = {"zero": False}
        if not self.series_title:
            return {"x": x, "y": y}
        color = {"field": "series", "type": "nominal", "title": self.series_title, "sort": None}
        beside = {"xOffset": {"field": "series", "sort": None}} if self.kind == "bar" and self._is_discrete else {}
        return {"x": x, "y": y, "color": color, **beside}

    def _moment(self, x: Any) -> Any:
        """Return a time without a zone as one of UTC, in which times are drawn."""
        naive = self.x_type == "temporal" and isinstance(x, str) and "T" in x and not OFFSET.search(x)
        return f"{x}Z" if naive else x

    @property
    def _is_discrete(self) -> bool:
        return self.x_type in ("nominal", "ordinal")

    def _has_long_labels(self) -> bool:
        labels = {str(row["x"]) for row in self.rows}
        return sum(7 * len(label) + 10 for label in labels) > self.width


def type_of(column: str, kind: str) -> str:
    """Return how Vega-Lite sees a column of DuckDB's type *column* on the x axis of a chart of *kind*."""
    if column.startswith(TIMES):
        return "ordinal" if kind == "bar" and column == "DATE" else "temporal"
    if column.startswith(NUMBERS) and not column.endswith("]"):
        return "ordinal" if kind == "bar" else "quantitative"
    return "nominal"


def is_number(column: str) -> bool:
    """Return whether a column of DuckDB's type *column* holds numbers."""
    return column.startswith(NUMBERS) and not column.endswith("]")
