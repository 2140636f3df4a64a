"""The manifest and the tests agree, whichever part of the tests is selected: the files are read, not collected."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkout import TESTS as FOLDERS
from checkout import python_files
from scenario_outcomes import unproven
from scenarios import BY_DECISION, SCENARIOS, Scenario
from system_package import require_programs

TESTS = Path(__file__).parent
COUNTS = {"000": 67, "001": 66, "002": 14, "003": 27, "004": 26}
"""How many scenarios each specification has."""

NOT_RUN = frozenset({"skip", "xfail", "soak"})
"""Marks of tests that the checks do not run, or do not need to pass: such a test proves nothing."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, order=True)
class Proof:
    """One place where a test says which scenario it proves."""

    id: str
    test: str


def mark_name(node: ast.AST) -> str:
    """Return ``x`` of ``pytest.mark.x`` and ``pytest.mark.x(...)``, else nothing."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) in ("pytest.mark", "mark"):
        return target.attr
    return ""


def marked_tests(tree: ast.Module) -> Iterator[Definition]:
    """Yield the tests and test classes that carry a scenario mark."""
    definitions = [node for node in ast.walk(tree) if isinstance(node, Definition)]
    for node in definitions:
        if node.name.startswith(("test_", "Test")) and "scenario" in map(mark_name, node.decorator_list):
            yield node


def proofs_in(source: str, file: str) -> Iterator[Proof]:
    """Yield what the tests of one file prove."""
    for test in marked_tests(ast.parse(source)):
        if NOT_RUN.isdisjoint(map(mark_name, test.decorator_list)):
            marks = [mark for mark in test.decorator_list if mark_name(mark) == "scenario"]
            ids = [argument for mark in marks if isinstance(mark, ast.Call) for argument in mark.args]
            # An id that is not a literal cannot be searched for, and fails here as an unknown one.
            yield from (Proof(ast.unparse(id).strip("'\""), f"{file}::{test.name}") for id in ids)


def stray_marks(source: str) -> int:
    """Return how many scenario marks stand anywhere but on a test."""
    tree = ast.parse(source)
    on_tests = [mark for test in marked_tests(tree) for mark in test.decorator_list]
    everywhere = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sum(mark_name(node) == "scenario" for node in everywhere if node not in on_tests)


def problems(scenarios: Iterable[Scenario], proofs: Iterable[Proof]) -> list[str]:
    """Return every disagreement between a manifest and what tests prove."""
    known = {scenario.id: scenario for scenario in scenarios}
    tests: dict[str, list[str]] = {}
    for proof in sorted(proofs):
        tests.setdefault(proof.id, []).append(proof.test)
    missing = [s for s in known.values() if s.state == "built" and s.id not in tests]
    unknown = [id for id in tests if id not in known]
    early = [id for id in tests if id in known and known[id].state == "open"]
    return [
        *(f"{s.id} is built and has no test: {s.title}" for s in missing),
        *(f"{id} is no scenario, but {', '.join(tests[id])} names it" for id in unknown),
        *(f"{id} is open, but {', '.join(tests[id])} proves it: mark it built" for id in early),
    ]


def sources() -> Iterator[tuple[str, str]]:
    """Yield every Python file of tests, also the plugins', as path and text."""
    for name, path in python_files(FOLDERS).items():
        yield name, path.read_text(encoding="utf-8")


def test_every_built_scenario_has_a_test_and_every_mark_names_a_built_scenario() -> None:
    found = problems(SCENARIOS, [proof for file, source in sources() for proof in proofs_in(source, file)])
    if found:
        pytest.fail(f"{len(found)} disagreements:\n" + "\n".join(found), pytrace=False)


def test_every_scenario_mark_stands_on_a_test() -> None:
    assert not [file for file, source in sources() if stray_marks(source)]


def test_each_specification_has_all_its_scenarios_numbered_from_one() -> None:
    expected = [f"{seed}-{number:02d}" for seed, count in COUNTS.items() for number in range(1, count + 1)]
    assert expected == [scenario.id for scenario in SCENARIOS]


def test_a_scenario_that_is_met_by_a_decision_is_so_by_one_that_exists() -> None:
    records = [int(path.name[:4]) for path in (TESTS.parent / "docs" / "decisions").glob("[0-9]*.md")]
    assert not [number for number in BY_DECISION if records.count(number) != 1]
    named = [id for ids in BY_DECISION.values() for id in ids]
    assert not [id for id in named if named.count(id) > 1]
    assert {*named} <= {scenario.id for scenario in SCENARIOS if scenario.state == "built"}


def test_no_two_scenarios_have_one_title() -> None:
    titles = [scenario.title for scenario in SCENARIOS]
    assert not [title for title in titles if titles.count(title) > 1]


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ("@pytest.mark.scenario('000-01', '000-02')\ndef test_x(): ...", ["000-01", "000-02"]),
        ("@pytest.mark.scenario('000-01')\nasync def test_x(): ...", ["000-01"]),
        ("@mark.scenario('000-01')\nclass TestX: ...", ["000-01"]),
        ("class TestX:\n  @pytest.mark.scenario('000-01')\n  def test_x(self): ...", ["000-01"]),
        ("@pytest.mark.skip\n@pytest.mark.scenario('000-01')\ndef test_x(): ...", []),
        ("@pytest.mark.xfail(reason='x')\n@pytest.mark.scenario('000-01')\ndef test_x(): ...", []),
        ("@pytest.mark.scenario('000-01')\ndef helper(): ...", []),
        ("@pytest.mark.scenario(NAME)\ndef test_x(): ...", ["NAME"]),
        ("@pytest.mark.anyio\ndef test_x(): ...", []),
    ],
)
def test_proofs_are_read_from_tests_that_run(source: str, ids: list[str]) -> None:
    assert ids == [proof.id for proof in proofs_in(source, "test_x.py")]


@pytest.mark.parametrize(
    ("source", "stray"),
    [
        ("@pytest.mark.scenario('000-01')\ndef test_x(): ...", 0),
        ("@pytest.mark.scenario('000-01')\ndef helper(): ...", 1),
        ("pytestmark = pytest.mark.scenario('000-01')", 1),
        ("pytest.param(1, marks=pytest.mark.scenario('000-01'))", 1),
    ],
)
def test_a_mark_that_no_reader_of_a_test_would_see_is_stray(source: str, stray: int) -> None:
    assert stray == stray_marks(source)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["000-01"], []),
        ([], ["000-01 is built and has no test: one"]),
        (["000-01", "000-99"], ["000-99 is no scenario, but t.py::test_x names it"]),
        (["000-01", "000-02"], ["000-02 is open, but t.py::test_x proves it: mark it built"]),
    ],
)
def test_a_scenario_that_the_list_and_the_tests_disagree_on_is_named(ids: list[str], words: list[str]) -> None:
    manifest = [Scenario("000-01", "built", "one"), Scenario("000-02", "open", "two")]
    assert words == problems(manifest, [Proof(id, "t.py::test_x") for id in ids])


# ---------------------------------------------------------------- only a test that ran and passed proves


def test_a_scenario_is_proven_by_one_of_its_tests() -> None:
    lines = ["scenario 000-02 was not proven: no test of it ran and passed"]
    assert lines == unproven(["000-01", "000-02", "000-01"], ["000-01"])


@pytest.mark.parametrize(
    ("body", "code"),
    [("pass", 0), ("require_programs('no-such-program')", 1)],
    ids=["passes", "skips"],
)
def test_a_session_fails_in_which_a_scenario_s_tests_were_skipped(tmp_path: Path, body: str, code: int) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = scenario\n")
    (tmp_path / "conftest.py").write_text(
        "from scenario_outcomes import ScenarioOutcomes\n"
        "def pytest_configure(config): config.pluginmanager.register(ScenarioOutcomes())\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom system_package import require_programs\n"
        f"@pytest.mark.scenario('004-17')\ndef test_it():\n    {body}\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "CI": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert ended.returncode == code, ended.stdout
    assert ("scenario 004-17 was not proven" in ended.stdout) is bool(code)


def test_in_ci_a_missing_program_is_a_failure_and_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    for ci, outcome in (("", pytest.skip.Exception), ("true", pytest.fail.Exception)):
        monkeypatch.setenv("CI", ci)
        with pytest.raises(outcome, match=r"not installed: no-such-program; run \.ci/system"):
            require_programs("sh", "no-such-program")


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_in_ci_packages_that_cannot_be_installed_end_the_run(tmp_path: Path, ci: str, code: int) -> None:
    # Nothing is found on this PATH but what the script itself needs, and an apt-get that fails.
    for program in ("bash", "id", "env"):
        (tmp_path / program).symlink_to(shutil.which(program) or "")
    for name, script in (("apt-get", "exit 1"), ("sudo", 'while [[ $1 == --* ]]; do shift; done; exec "$@"')):
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "true").symlink_to(shutil.which("true") or "")
    done = subprocess.run(
        [shutil.which("bash") or "", TESTS.parent / ".ci" / "system"],
        env={"PATH": str(tmp_path), "CI": ci}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "not installed, for apt-get failed: bubblewrap" in done.stderr
