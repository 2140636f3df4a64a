"""How long each file of tests takes: stored by a run with ``--store-durations``, and used to begin with the longest.

``python tests/stored_durations.py durations.tsv`` takes over what a run on an idle machine has stored.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from checkout import ROOT

STORED = Path(__file__).with_name("durations.tsv")
LEAST_SECONDS = 3.0
"""What takes less is not listed: the order of the rest does not matter."""
SHOWN = 40


def read_durations(file: Path = STORED) -> dict[str, float]:
    """Return the seconds of each file of tests, by its path in the checkout."""
    rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return {path: float(seconds) for seconds, path in rows}


class StoredDurations:
    """Writes down what each test took as it ends, so that a run that is cut off has stored what it knows."""

    def __init__(self, file: Path) -> None:
        """Begin with an empty *file*."""
        self._file = file
        self._file.write_text("", encoding="utf-8")
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what one phase of a test took."""
        self._seconds[report.nodeid] += report.duration
        if report.when == "teardown":
            with self._file.open("a", encoding="utf-8") as stored:
                stored.write(f"{self._seconds[report.nodeid]:.2f}\t{report.nodeid}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the files that took longest."""
        sums = by_file(self._seconds)
        terminalreporter.section(f"slowest files, of {sum(sums.values()):,.0f} s in all")
        for path in list(sums)[:SHOWN]:
            terminalreporter.write_line(f"{sums[path]:8.1f} s  {path}")


def by_file(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of each file, the longest first."""
    sums: dict[str, float] = defaultdict(float)
    for test, took in seconds.items():
        sums[test.partition("::")[0]] += took
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def sort_longest_first(items: list[pytest.Item]) -> None:
    """Let files that take long come first, so that those that run side by side end together."""
    known = read_durations()
    items.sort(key=lambda item: -known.get(item.path.relative_to(ROOT).as_posix(), 0.0))


def main() -> None:
    """Take over what a run has stored."""
    sums = by_file(read_durations(Path(sys.argv[1])))
    rows = (f"{seconds:.0f}\t{path}\n" for path, seconds in sums.items() if seconds >= LEAST_SECONDS)
    STORED.write_text("".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
