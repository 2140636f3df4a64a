"""One table is cut into TOML, and cut out again."""

from __future__ import annotations

import pytest

from ot.config.clients.toml_text import TomlText

PATH = ("mcp_servers", "onetool")
TABLE = '[mcp_servers.onetool]\ncommand = "x"\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", TABLE),
        ("a = 1 # one\n", f"a = 1 # one\n\n{TABLE}"),
        ("[[list]]\nb = 2\n# the end\n", f"[[list]]\nb = 2\n# the end\n\n{TABLE}"),
        ('t = """\n[mcp_servers.onetool]\n"""\n', f't = """\n[mcp_servers.onetool]\n"""\n\n{TABLE}'),
    ],
)
def test_a_table_goes_to_the_end_and_out_again(old: str, new: str) -> None:
    put = TomlText(old).put(PATH, {"command": "x"})
    assert put.text == new
    assert put.remove(PATH).text == old


def test_all_of_a_table_is_taken_out_wherever_its_parts_are() -> None:
    text = (
        '[mcp_servers."onetool"]\ncommand = "x" # ours\nargs = [\n  "]", # one\n]\n# about a\n[mcp_servers.a]\nb = 1\n'
        "[ mcp_servers . onetool . env ]\nA = '''\n[x]\n'''\n[z]\n"
    )
    assert TomlText(text).remove(PATH).text == "# about a\n[mcp_servers.a]\nb = 1\n[z]\n"


def test_keys_with_dots_are_taken_out_too() -> None:
    text = "[mcp_servers]\nonetool.command = 'x'\nonetool.args = []\na.command = 'y'\n"
    assert TomlText(text).remove(PATH).text == "[mcp_servers]\na.command = 'y'\n"


def test_values_are_replaced_and_added_where_the_table_is() -> None:
    text = f"{TABLE}\n[mcp_servers.onetool.env]\nA = '1'\n\n[z]\n"
    put = TomlText(text).put((*PATH, "command"), 'a "quoted" \\ path').put((*PATH, "startup_timeout_sec"), 60)
    assert put.text == (
        '[mcp_servers.onetool]\ncommand = "a \\"quoted\\" \\\\ path"\nstartup_timeout_sec = 60\n\n'
        "[mcp_servers.onetool.env]\nA = '1'\n\n[z]\n"
    )


def test_a_place_that_toml_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be changed there safely"):
        TomlText('mcp_servers = { a = { command = "x" } }\n').put(PATH, {"command": "x"})


def test_the_line_of_what_is_there_is_known() -> None:
    text = TomlText("a = 1\n\n[mcp_servers.b]\nc = 1\n")
    assert [text.line_of(path) for path in (("gone",), PATH, ("mcp_servers", "b", "c"))] == [1, 3, 4]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["# x\n", "\n", "[[a]]\n", "[[a]]\nb = '''\n'''\n"])
def test_no_file_takes_long(unit: str) -> None:
    text = unit * 2_000
    assert TomlText(text).put(PATH, {"command": "x"}).remove(PATH).text.strip() == text.strip()
