"""Fails a session in which a scenario was not proven: all its tests that were selected were skipped."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

SCENARIO = "scenario"


class ScenarioOutcomes:
    """Watches which tests of scenarios pass: a report brings its scenarios along."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._proven: set[str] = set()
        self._unproven: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Let each report say which scenarios its test proves."""
        for item in items:
            item.user_properties += [(SCENARIO, id) for mark in item.iter_markers(SCENARIO) for id in mark.args]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a test that ran, and whether it passed."""
        ids = {str(value) for name, value in report.user_properties if name == SCENARIO}
        self._wanted |= ids
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self._proven |= ids

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Turn a success into a failure when a scenario was not proven."""
        if exitstatus == pytest.ExitCode.OK and not hasattr(session.config, "workerinput"):
            self._unproven = unproven(self._wanted, self._proven)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if self._unproven else exitstatus

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the scenarios that were not proven."""
        for line in self._unproven:
            terminalreporter.write_line(line, red=True)


def unproven(wanted: Iterable[str], proven: Iterable[str]) -> list[str]:
    """Return a line for each scenario that is *wanted* and not *proven*."""
    return [f"scenario {id} was not proven: no test of it ran and passed" for id in sorted({*wanted} - {*proven})]
