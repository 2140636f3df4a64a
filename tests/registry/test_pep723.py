"""What a pack's file declares about its dependencies, and how a mistake in it is told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.registry.pep723 import ScriptMetadata, script_metadata, script_problem
from ot.workers.pack_environment import find_uv

WHOLE = """\
'''A pack.'''
# /// script
# requires-python = ">=3.12"
# dependencies = [
#   "six>=1.16",  # the comment of a comment
#   "httpx[http2]; python_version >= '3.12'",
# ]
#
# [tool.uv]
# exclude-newer = "2026-01-01T00:00:00Z"
# ///
pack = "demo"
"""


def block(*lines: str) -> str:
    return "\n".join(["# /// script", *(f"# {line}" if line else "#" for line in lines), "# ///", ""])


def metadata_of(text: str) -> ScriptMetadata:
    """Return the metadata of a file that is in order."""
    assert script_problem(text) == ""
    metadata = script_metadata(text)
    assert metadata is not None
    return metadata


@pytest.mark.scenario("002-06")
def test_comment_prefixes_come_off_and_the_rest_is_toml() -> None:
    dependencies = ("six>=1.16", "httpx[http2]; python_version >= '3.12'")
    assert ScriptMetadata(True, dependencies, ">=3.12", needs_consent=False) == script_metadata(WHOLE)


@pytest.mark.scenario("002-06")
@pytest.mark.parametrize("lines", [("dependencies = [",), ("a = 1", "a = 2"), ("= 3",), ("a = " + "[" * 5000,)])
def test_malformed_toml_has_no_metadata(lines: tuple[str, ...]) -> None:
    assert script_metadata(block(*lines)) is None


def test_a_file_without_a_block_declares_nothing() -> None:
    text = "# /// pyproject\n# a = 1\n# ///\nprint('# /// script')\n"
    assert ScriptMetadata(present=False) == metadata_of(text)


def test_an_empty_block_is_a_block() -> None:
    assert ScriptMetadata(present=True) == script_metadata(block(""))


def test_line_ends_and_a_byte_order_mark_of_other_systems_do_not_matter() -> None:
    text = block('dependencies = ["six"]')
    assert ("six",) == metadata_of(text.replace("\n", "\r\n")).dependencies
    assert ("six",) == metadata_of("\ufeff" + text).dependencies


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "import os\n\n" + block("a = 1", "dependencies = [six]"),
            "line 5: the '# /// script' block is not valid TOML",
        ),
        (block("dependencies = ["), "line 2: the '# /// script' block is not valid TOML"),
        (block("a = 1") + "\n" + block("a = 1"), "line 5: there is a second '# /// script' block"),
        ("x = 1\n# /// script\n# a = 1\n", "line 2: the '# /// script' block is not closed"),
        ("# /// script\n#a = 1\n# ///\n", "line 1: the '# /// script' block is not closed"),
        (block("a = " + "[" * 5000), "line 2: the '# /// script' block is nested too deeply"),
        (block('dependencies = "six"'), "'dependencies' in the '# /// script' block must be a list of strings"),
        (block('dependencies = ["six", 1]'), "'dependencies' in the '# /// script' block must be a list of strings"),
        (block('dependencies = ["six ~~ 1"]'), "the dependency 'six ~~ 1' is not valid"),
        (block('dependencies = ["--index-url=x"]'), "the dependency '--index-url=x' is not valid"),
        (block("requires-python = 3.12"), "'requires-python' in the '# /// script' block must be a string"),
        (block('requires-python = "three"'), "requires-python = 'three' is not valid"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, problem: str) -> None:
    assert script_metadata(text) is None
    assert script_problem(text).startswith(problem)


@pytest.mark.parametrize(
    "lines",
    [
        ('dependencies = ["six @ https://files.example/six.whl"]',),
        ('dependencies = ["six @ git+https://code.example/six"]',),
        ('dependencies = ["six"]', "[tool.uv.sources]", 'six = { path = "../six" }'),
        ('dependencies = ["six"]', "[[tool.uv.index]]", 'url = "https://index.example/simple"'),
    ],
)
def test_packages_from_elsewhere_than_the_index_need_consent(lines: tuple[str, ...]) -> None:
    assert metadata_of(block(*lines)).needs_consent


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,10}", fullmatch=True)


@given(st.lists(NAMES, max_size=5))
def test_what_was_written_as_dependencies_is_read_again(names: list[str]) -> None:
    text = block(f"dependencies = {json.dumps(names)}")
    assert tuple(names) == metadata_of(text).dependencies


@given(st.text())
def test_no_text_breaks_the_reading(text: str) -> None:
    wrapped = "\n".join(["# /// script", *(f"# {line}" for line in text.splitlines()), "# ///"])
    for source in (text, wrapped):
        assert (script_metadata(source) is None) == bool(script_problem(source))


# ---------------------------------------------------------------- the same file for uv and for us

SEPARATORS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
NONE_SUCH = 'requires-python = "==3.99.*"'


@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
def test_a_line_that_only_some_take_for_ended_is_refused(separator: str) -> None:
    hidden = block(f"# note{separator}xxz = '''", "[[tool.uv.index]]", "url = 'http://x/'", f"# end{separator}xx'''")
    problem = script_problem(f"\n{hidden}")
    assert problem.startswith(f"line 3: U+{ord(separator):04X} stands in the '# /// script' block")
    assert script_metadata(hidden) is None


def test_other_separators_outside_the_block_are_the_files_own_affair() -> None:
    assert script_metadata(f"{WHOLE}x = '\u2028\x0c'\n") == script_metadata(WHOLE)


UNEQUAL = {
    "as usual": block(NONE_SUCH),
    "windows": block(NONE_SUCH).replace("\n", "\r\n"),
    "after a carriage return": f"x = 1\r{block(NONE_SUCH)}",
    "first after a carriage return": f"x = 1\r{block(NONE_SUCH)}\n{block('dependencies = []')}",
    "inside another block": f"# /// other\n{block(NONE_SUCH)}\n{block('dependencies = []')}",
    "in a comment": block(f"# note\u2028xx{NONE_SUCH}"),
    "after a form feed": block(f"# note\x0cxx{NONE_SUCH}"),
    "two ends": block("dependencies = []", "///", NONE_SUCH),
    "open": block(NONE_SUCH).removesuffix("# ///\n"),
}


@pytest.mark.parametrize("text", UNEQUAL.values(), ids=UNEQUAL.keys())
def test_whatever_is_accepted_is_what_uv_reads(text: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_bytes(text.encode())
    command = [
        str(find_uv(os.environ)),
        "python",
        "find",
        "--offline",
        "--no-python-downloads",
        "--script",
        str(script),
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    metadata = script_metadata(text)
    if metadata and metadata.present:
        assert ("==3.99.*" in said.stderr) == (metadata.requires_python == "==3.99.*")
        assert "PEP 723" not in said.stderr
