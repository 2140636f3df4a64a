"""One entry is cut into JSON as a careful person would write it, and cut out again."""

from __future__ import annotations

import pytest

from ot.config.clients.json_text import JsonText

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
def test_no_file_takes_long(unit: str) -> None:
    text = f'{{{unit * 10_000} "servers": {{}}}}'
    assert JsonText(text).put(PATH, 1).remove(PATH).data == {**JsonText(text).data}
