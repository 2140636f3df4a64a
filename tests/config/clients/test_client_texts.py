"""What stands in clients' files, as JSON and as TOML: servers, their launchers and their secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import write
from ot.config.clients.json_text import JsonText
from ot.config.clients.launcher import launch_command
from ot.config.clients.server_secrets import with_own_secrets
from ot.config.clients.toml_text import TomlText
from ot.errors import ConfigError

PATH = ("servers", "onetool")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The comment stays beside what it is about.
        ('{\n  "servers": {\n    "a": 1 // one\n  }\n}',
         '{\n  "servers": {\n    "a": 1, // one\n    "onetool": 2\n  }\n}'),
        ('{\n\t"servers": {\n\t\t"a": 1, // one\n\t},\n}',
         '{\n\t"servers": {\n\t\t"a": 1, // one\n\t\t"onetool": 2,\n\t},\n}'),
        ('{"servers": {"a": 1}}', '{"servers": {"a": 1, "onetool": 2}}'),
        ('{"servers": {"a": 1,}}', '{"servers": {"a": 1, "onetool": 2,}}'),
        ('{\r\n "servers": {\r\n  "a": 1\r\n }\r\n}', '{\r\n "servers": {\r\n  "a": 1,\r\n  "onetool": 2\r\n }\r\n}'),
        ('{\n  "servers": {\n  }\n}', '{\n  "servers": {\n    "onetool": 2\n  }\n}'),
        ('{\n  "servers": { // none yet\n  }\n}', '{\n  "servers": { // none yet\n    "onetool": 2\n  }\n}'),
        # Of two with the same key the last counts, for every reader.
        ('{"servers": {"b": 0}, "servers": {"a": 1}}', '{"servers": {"b": 0}, "servers": {"a": 1, "onetool": 2}}'),
    ],
)  # fmt: skip
def test_an_entry_goes_in_behind_the_last_and_out_again(old: str, new: str) -> None:
    put = JsonText(old).put(PATH, 2)
    assert put.text == new
    assert put.remove(PATH).text == old


def test_a_list_that_is_missing_is_made_in_the_style_of_the_file() -> None:
    put = JsonText('// mine\n{\n    "theme": "dark", // at night\n}\n').put(PATH, {"command": "x", "args": ["y", "z"]})
    assert put.text == (
        '// mine\n{\n    "theme": "dark", // at night\n    "servers": {\n        "onetool": {\n'
        '            "command": "x",\n            "args": ["y", "z"]\n        }\n    },\n}\n'
    )


def test_a_value_is_replaced_where_it_is() -> None:
    text = '{"servers": {"onetool": /* old */ {"a": [1, 2]} /* end */, "b": 1}}'
    assert JsonText(text).put(PATH, 3).text == '{"servers": {"onetool": /* old */ 3 /* end */, "b": 1}}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"servers": {"onetool": 1, "b": 2}}', '{"servers": { "b": 2}}'),
        ('{"servers": {\n "a": 1, // a\n "onetool": 1, "b": 2}}', '{"servers": {\n "a": 1, // a\n "b": 2}}'),
        ('{"servers": {\n // ours\n "onetool": 1\n}}', '{"servers": {\n // ours\n}}'),
        ('{"servers": {"a": 1, "onetool": 1 /* last */ }}', '{"servers": {"a": 1 /* last */ }}'),
        ('{"servers": {"onetool": 1, "a": 2, "onetool": 3}}', '{"servers": { "a": 2}}'),
        ('{"servers": {"a": 1}}', '{"servers": {"a": 1}}'),
        ('{"a": 1}', '{"a": 1}'),
        ("", ""),
    ],
)
def test_an_entry_is_taken_out_of_anywhere(old: str, new: str) -> None:
    assert JsonText(old).remove(PATH).text == new


def test_the_line_of_what_is_there_is_known() -> None:
    text = JsonText('{\n\n  "servers": {\n    "onetool": 1}}')
    assert [text.line_of(path) for path in (("gone",), ("servers", "gone"), PATH)] == [1, 3, 4]


@pytest.mark.parametrize("servers", ["[]", "null", '"x"', "1"])
def test_what_is_not_an_object_is_refused(servers: str) -> None:
    with pytest.raises(ValueError, match="'servers' is not an object"):
        JsonText(f'{{"servers": {servers}}}').put(PATH, 1)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["/* */ ", "// x\n", " ", '"a": {}, '])
def test_no_json_file_of_a_client_takes_long_to_read(unit: str) -> None:
    text = f'{{{unit * 10_000} "servers": {{}}}}'
    assert JsonText(text).put(PATH, 1).remove(PATH).data == {**JsonText(text).data}


TOML_PATH = ("mcp_servers", "onetool")
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
    put = TomlText(old).put(TOML_PATH, {"command": "x"})
    assert put.text == new
    assert put.remove(TOML_PATH).text == old


def test_all_of_a_table_is_taken_out_wherever_its_parts_are() -> None:
    text = (
        '[mcp_servers."onetool"]\ncommand = "x" # ours\nargs = [\n  "]", # one\n]\n# about a\n[mcp_servers.a]\nb = 1\n'
        "[ mcp_servers . onetool . env ]\nA = '''\n[x]\n'''\n[z]\n"
    )
    assert TomlText(text).remove(TOML_PATH).text == "# about a\n[mcp_servers.a]\nb = 1\n[z]\n"


def test_keys_with_dots_are_taken_out_too() -> None:
    text = "[mcp_servers]\nonetool.command = 'x'\nonetool.args = []\na.command = 'y'\n"
    assert TomlText(text).remove(TOML_PATH).text == "[mcp_servers]\na.command = 'y'\n"


def test_values_are_replaced_and_added_where_the_table_is() -> None:
    text = f"{TABLE}\n[mcp_servers.onetool.env]\nA = '1'\n\n[z]\n"
    put = TomlText(text).put((*TOML_PATH, "command"), 'a "quoted" \\ path').put((*TOML_PATH, "startup_timeout_sec"), 60)
    assert put.text == (
        '[mcp_servers.onetool]\ncommand = "a \\"quoted\\" \\\\ path"\nstartup_timeout_sec = 60\n\n'
        "[mcp_servers.onetool.env]\nA = '1'\n\n[z]\n"
    )


def test_a_place_that_toml_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be changed there safely"):
        TomlText('mcp_servers = { a = { command = "x" } }\n').put(TOML_PATH, {"command": "x"})


def test_the_line_of_a_table_that_is_there_is_known() -> None:
    text = TomlText("a = 1\n\n[mcp_servers.b]\nc = 1\n")
    assert [text.line_of(path) for path in (("gone",), TOML_PATH, ("mcp_servers", "b", "c"))] == [1, 3, 4]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["# x\n", "\n", "[[a]]\n", "[[a]]\nb = '''\n'''\n"])
def test_no_toml_file_of_a_client_takes_long_to_read(unit: str) -> None:
    text = unit * 2_000
    assert TomlText(text).put(TOML_PATH, {"command": "x"}).remove(TOML_PATH).text.strip() == text.strip()


def program(path: Path) -> Path:
    write(path, "#!/bin/sh\n").chmod(0o700)
    return path


def test_a_link_that_was_called_is_kept(tmp_path: Path) -> None:
    tool = program(tmp_path / "share/uv/tools/onetool-run/bin/onetool")
    link = tmp_path / "bin/onetool"
    link.parent.mkdir()
    link.symlink_to(tool)
    assert launch_command(str(link), tool.parents[1], {}) == (str(link), "serve")


def test_a_relative_call_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = program(tmp_path / ".venv/bin/onetool")
    monkeypatch.chdir(tmp_path)
    assert launch_command(".venv/bin/onetool", tmp_path / ".venv", {}) == (str(tool), "serve")


def test_without_a_call_the_program_of_the_environment_is_found(tmp_path: Path) -> None:
    tool = program(tmp_path / ".venv/bin/onetool")
    assert launch_command("-c", tmp_path / ".venv", {"PATH": ""}) == (str(tool), "serve")


def test_what_uvx_started_is_started_by_the_users_uvx_again(tmp_path: Path) -> None:
    prefix = tmp_path / "cache/uv/archive-v0/abc"
    program(prefix / "bin/uvx")
    program(prefix / "bin/onetool")
    own = program(tmp_path / "local/bin/uvx")
    path = f"{prefix / 'bin'}:{own.parent}"
    command = launch_command(str(prefix / "bin/onetool"), prefix, {"PATH": path})
    assert (command[0], command[1], *command[3:]) == (str(own), "--from", "onetool", "serve")
    with pytest.raises(ConfigError, match="uv tool install"):
        launch_command(str(prefix / "bin/onetool"), prefix, {"PATH": str(prefix / "bin")})


def test_where_there_is_no_program_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="uv tool install"):
        launch_command("-c", tmp_path, {"PATH": str(tmp_path)})


def test_a_secret_gets_another_name_when_its_own_is_taken() -> None:
    entry, secrets = with_own_secrets("git", {"env": {"A": "${TOKEN}"}}, {"TOKEN": "new"}, {"TOKEN": "old"})
    assert (entry, secrets) == ({"env": {"A": "${GIT_TOKEN}"}}, {"GIT_TOKEN": "new"})


def test_a_secret_takes_no_name_that_another_has() -> None:
    kept = {"TOKEN": "old", "GIT_TOKEN": "older"}
    entry, secrets = with_own_secrets(
        "git", {"env": {"A": "${TOKEN}", "B": "${GIT_TOKEN_2}"}}, {"TOKEN": "new", "GIT_TOKEN_2": "two"}, kept
    )
    assert secrets == {"GIT_TOKEN_3": "new", "GIT_TOKEN_2": "two"}
    assert entry == {"env": {"A": "${GIT_TOKEN_3}", "B": "${GIT_TOKEN_2}"}}


def test_a_secret_that_is_kept_already_with_the_same_value_keeps_its_name() -> None:
    assert with_own_secrets("git", {"url": "${TOKEN}"}, {"TOKEN": "same"}, {"TOKEN": "same"})[1] == {"TOKEN": "same"}
