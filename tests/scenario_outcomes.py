"""Fails a session in which a scenario was not proven: all its tests that were selected were skipped."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest


class ScenarioOutcomes:
    """Watches which tests of scenarios pass."""

    def __init__(self) -> None:
        self._ids: dict[str, tuple[str, ...]] = {}
        self._passed: set[str] = set()
        self._unproven: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take note of the tests that were selected."""
        for item in session.items:
            self._ids[item.nodeid] = tuple(id for mark in item.iter_markers("scenario") for id in mark.args)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a test that ran and passed."""
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self._passed.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Turn a success into a failure when a scenario was not proven."""
        if exitstatus == pytest.ExitCode.OK and not session.config.option.collectonly:
            self._unproven = unproven(self._ids, self._passed)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if self._unproven else exitstatus

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the scenarios that were not proven."""
        for line in self._unproven:
            terminalreporter.write_line(line, red=True)


def unproven(ids: Mapping[str, Collection[str]], passed: Collection[str]) -> list[str]:
    """Return a line for each scenario among *ids*, which has them by test, of which no test has passed."""
    proven = {id for test in passed for id in ids.get(test, ())}
    wanted = sorted({id for given in ids.values() for id in given})
    return [f"scenario {id} was not proven: no test of it ran and passed" for id in wanted if id not in proven]
