"""onetool save: a run's program becomes a function with parameters, and nothing that is there is replaced."""

from __future__ import annotations

import json
import stat

import pytest

from cli.command import OneTool
from ot.ledger.kept_programs import BEFORE, KEPT, MAX_BYTES, KeptPrograms, read_kept

PROGRAM = """
found = []
for path in ["a.txt", "b.txt"]:
    text = file.read(path=path)
    found += [line for line in text.splitlines() if "TODO" in line][:3]
{"lines": found, "most": 3}
"""


def run_of(onetool: OneTool, program: str) -> str:
    """Run a program, and return the id of its run."""
    (onetool.cwd / "a.txt").write_text("TODO one\nplain\n")
    (onetool.cwd / "b.txt").write_text("TODO two\nFIXME three\n")
    ended = onetool("run", "--json", program)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)["meta"]["run"]


def test_a_run_is_saved_with_parameters_and_can_be_called(onetool: OneTool) -> None:
    run = run_of(onetool, PROGRAM)
    params = ("--param", "word=TODO", "--param", "most=3", "--param", 'paths=["a.txt", "b.txt"]')
    ended = onetool("save", run, "--as", "todos.find", *params, "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert (told["tool"], told["parameters"]) == ("todos.find", ["word", "most", "paths"])
    file = onetool.user / "programs" / "todos.py"
    assert file.read_text().startswith("def find(word: str = 'TODO', most: int = 3, paths: list = ['a.txt', 'b.txt']):")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert onetool("run", "todos.find()").out == '{"lines":["TODO one","TODO two"],"most":3}\n'
    assert onetool("run", "todos.find(word='FIXME', most=1)").out == '{"lines":["FIXME three"],"most":1}\n'


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("size = len(file.read(path='a.txt'))", "15\n"),
        ("x = file.read(path='a.txt')\nif x:\n    return 'some'\nreturn 'none'", "some\n"),
        ("import asyncio\nawait asyncio.gather(file.read(path='a.txt'), file.read(path='b.txt'))\n1", "1\n"),
        ("json.dumps(len(file.read(path='a.txt')))", "15\n"),
        ("text = '''a\n  b'''\nlen(file.read(path='a.txt') + text)", "20\n"),
    ],
)
def test_what_a_program_answers_its_function_returns(onetool: OneTool, program: str, printed: str) -> None:
    run = run_of(onetool, program)
    assert onetool("save", run, "--as", "again").code == 0
    assert onetool("run", "again.run()").out == printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--as", "file.find"), "is a pack already"),
        (("--as", "json.find"), "every program knows"),
        (("--as", "../evil.find"), "FILE.FUNCTION"),
        (("--as", "todos._find"), "FILE.FUNCTION"),
        (("--as", "todos.find", "--param", "word=nowhere"), "holds no 'nowhere'"),
        (("--as", "todos.find", "--param", "path=a.txt"), "uses it already"),
        (("--as", "todos.find", "--param", "class=a.txt"), "cannot be a parameter"),
        (("--as", "todos.find", "--param", "word"), "NAME=LITERAL"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_nothing_is_written(
    onetool: OneTool, arguments: tuple[str, ...], says: str
) -> None:
    run = run_of(onetool, PROGRAM)
    ended = onetool("save", run, *arguments)
    assert ended.code != 0 and says in ended.err
    assert not (onetool.user / "programs").exists()


def test_a_file_that_is_there_and_a_link_are_left_as_they_are(onetool: OneTool) -> None:
    run = run_of(onetool, PROGRAM)
    assert onetool("save", run, "--as", "todos.find").code == 0
    file = onetool.user / "programs" / "todos.py"
    before = file.read_text()
    assert "left as it is" in onetool("save", run, "--as", "todos.other").err
    assert file.read_text() == before
    (file.parent / "linked.py").symlink_to(onetool.cwd / "elsewhere.py")
    assert onetool("save", run, "--as", "linked.find").code != 0
    assert not (onetool.cwd / "elsewhere.py").exists()


def test_kept_programs_are_listed_and_an_unknown_run_is_named(onetool: OneTool) -> None:
    run = run_of(onetool, "len(file.read(path='a.txt'))")
    run_of(onetool, "1 + 1")
    assert [row["run"] for row in json.loads(onetool("save", "--json").out)] == [run]
    assert run in onetool("save").out
    assert "no program of a run 'nothing' is kept" in onetool("save", "nothing", "--as", "x").err


def test_programs_are_kept_without_secrets_privately_and_bounded(onetool: OneTool) -> None:
    for batch in range(5):
        kept = KeptPrograms(onetool.user, lambda text: text.replace("hidden", "[secret:X]"))
        for number in range(batch * 40, batch * 40 + 40):
            kept.keep("/work", f"r{number}", f"'hidden{number}'" + "#" * 15_000)
        kept.keep("/work", "long", "#" * 20_000)
        kept.close()
    found = read_kept(onetool.user)
    assert found[0].run == "r199" and found[0].program.startswith("'[secret:X]199'")
    assert "long" not in {one.run for one in found}
    assert {path.name for path in (onetool.user / KEPT).parent.glob("programs*")} >= {KEPT.name, f"{KEPT.name}{BEFORE}"}
    for name in (KEPT, f"{KEPT}{BEFORE}"):
        assert (onetool.user / name).stat().st_size < 2 * MAX_BYTES
        assert stat.S_IMODE((onetool.user / name).stat().st_mode) == 0o600
