"""What might hold up the server, each as one command: by kind and name.

Frames are forged inside the exact engine's jail; replies, notices, lines, questions and definitions come from the
server of ``hostile_server.py``; what a client itself sends is written as raw lines before the command.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

FORGE = """
import json, os, struct, threading
def raw(data):
    data = memoryview(data)
    while data:
        data = data[os.write(3, data):]
def send(message, number=0):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    raw(struct.pack("!II", len(data), number) + data)
def end(**more):
    send({"t": "end", "dropped": 0, "magic": {}, **more})
def call(pack="file", name="read", args=(), number=1, **more):
    send({"t": "call", "p": pack, "f": name, "a": list(args), "k": [], "w": [], **more}, number)
def tagged(kind, value):
    return {"$ot": kind, "v": value}
"""
WAIT = "\nthreading.Event().wait(0.5)"
ALIKE = "[tagged('int', hex(n * (2**61 - 1))) for n in range(1, 20001)]"


@dataclass(frozen=True)
class Entry:
    """One thing to try: lines of the client's own, then a command."""

    name: str
    command: str = "1"
    lines: bytes = b""


FRAMES = {
    "a member of a long name": "send({'t': 'member', 'p': 'file', 'f': 'r' * 30_000_000}, 1)",
    "a member of a long pack": "send({'t': 'member', 'p': 'r' * 30_000_000, 'f': 'read'}, 1)",
    "a call of a long name": "call(name='r' * 30_000_000)",
    "a call of a long pack": "call(pack='r' * 30_000_000)",
    "a call with a long parameter": "call(k=['r' * 30_000_000], w=[1])",
    "a call with many parameters": "call(k=[str(n) for n in range(100_000)], w=[0] * 100_000)",
    "calls of names just short enough": "for n in range(1, 300): call(name='r' * 199, number=n)",
    "members that are not there": "for n in range(1, 500): send({'t': 'member', 'p': 'file', 'f': f'r{n}'}, n)",
    "packs that are not there": "for n in range(1, 500): call(pack=f'p{n}', number=n)",
    "a call of a number": "call(pack=1, name=[1] * 100_000)",
    "arguments of a million parts": "call(args=[list(range(1_000_000))])",
    "arguments of 140,000 parts": "call(args=[list(range(140_000))])",
    "arguments of 30 MB": "call(args=['x' * 30_000_000])",
    "arguments of 8 MB of escapes": "call(args=['\\x01' * 1_300_000])",
    "arguments of many small texts": "call(args=[['a'] * 140_000])",
    "arguments nested deeply": "send(b'{\"t\":\"call\",\"a\":' + b'[' * 100_000 + b']' * 100_000 + b'}', 1)",
    "twenty calls of large arguments": "for n in range(1, 20): call(args=['x' * 1_000_000], number=n)",
    "an error of two lists": "end(error=[[1] * 1_000_000, [2] * 1_000_000, 3])",
    "an error of short lists": "end(error=[[1] * 60_000, [2] * 60_000, 3])",
    "an error of two long texts": "end(error=['E' * 15_000_000, 'm' * 15_000_000, 3])",
    "an error with a huge line": "end(error=['E', 'm', 10**4000])",
    "an error that is a dict": "end(error={str(n): n for n in range(70_000)})",
    "an error of many parts": "end(error=[0] * 1_000_000)",
    "a value of seven million parts": 'send(b\'{"v":[\' + b\'0,\' * 7_000_000 + b\'0],"magic":{},"t":"end"}\')',
    "a value of a million parts, then junk": 'send(b\'{"v":[\' + b\'0,\' * 1_000_000 + b\'x],"magic":{},"t":"end"}\')',
    "a value without an end": 'send(b\'{"v":[\' + b\'[0,\' * 300_000 + b\',"magic":{},"t":"end"}\')',
    "a value of many opening brackets": 'send(b\'{"v":\' + b\'[\' * 1_000_000 + b\',"magic":{},"t":"end"}\')',
    "a value of empty lists": 'send(b\'{"v":[\' + b\'[],\' * 500_000 + b\'0],"magic":{},"t":"end"}\')',
    "a value of empty texts": 'send(b\'{"v":[\' + b\'"",\' * 500_000 + b\'0],"magic":{},"t":"end"}\')',
    "a value of backslashes": 'send(b\'{"v":["\' + b\'\\\\\\\\\' * 4_000_000 + b\'"],"magic":{},"t":"end"}\')',
    "a text of commas": "end(v=',' * 8_000_000)",
    "texts of escaped quotes": "end(v=['\"' * 2_000_000, [0] * 160_000])",
    "many wishes": "end(v=1, magic={str(n): n for n in range(70_000)})",
    "a long wish": "end(v=1, magic={'format': 'x' * 8_000_000})",
    "dropped text without end": 'send(b\'{"t":"end","magic":{},"dropped":\' + b\'9\' * 1_000_000 + b\'}\')',
    "a set whose items have one hash": f"end(v=tagged('set', {ALIKE}))",
    "a dict whose keys have one hash": f"end(v=tagged('dict', [[n, 0] for n in {ALIKE}]))",
    "a tag that is a list": "end(v=tagged([0] * 140_000, 1))",
    "a long tag": "end(v=tagged('x' * 8_000_000, 1))",
    "an int of eight million digits": "end(v=tagged('int', '0x' + 'f' * 8_000_000))",
    "a decimal of a million digits": "end(v=tagged('decimal', '1' * 1_000_000))",
    "a date of a megabyte": "end(v=tagged('datetime', '1' * 1_000_000))",
    "data of 4 MB": "end(v=tagged('bytes', 'QUJD' * 1_000_000))",
    "140,000 tagged numbers": "end(v=[tagged('int', '0x1')] * 50_000)",
    "prints, as many as go": "for n in range(2000): send({'t': 'print', 'o': 'x' * 500})",
    "a print of a megabyte": "send({'t': 'print', 'o': 'x' * 1_000_000})",
    "a print that is a list": "send({'t': 'print', 'o': [0] * 140_000})",
    "junk of 8 MB": "send(b'\\xff' * 8_000_000)",
    "quotes of 8 MB": "send(b'\"' * 8_000_000)",
    "notices of an unknown kind": "send({'t': 'x' * 8_000_000})",
    "a list of 140,000 parts": "send([0] * 140_000)",
}
COMMANDS = {
    "a fence and spaces": "```" + " " * 20_000 + "x",
    "a fence, a word and spaces": "```python" + " \t" * 20_000 + "x",
    "a long row of backticks": "`" * 100_000,
    "two long rows of backticks": "`" * 50_000 + "\nx\n" + "`" * 49_999,
    "a fence and a long word": "```" + "a" * 500_000,
    "a fence without an end": "```\n" + "x\n`` " * 100_000,
    "fences in fences": "".join("`" * n + "\n" for n in range(300, 3, -1)) + "x",
    "closed fences in fences": "```\n" * 1000 + "x" + "\n```" * 1000,
    "tildes": "~~~\n" * 20_000,
    "prefixes": "__ot " * 60_000 + "1",
    "prefixes and colons": "__ot:" * 60_000 + "1",
    "prefixes and lines": "__onetool\n" * 60_000 + "1",
    "an inline tick and spaces": "`" + " " * 500_000,
    "spaces": " " * 900_000 + "1",
    "lines": "\n" * 900_000 + "1",
    "returns": "\r" * 900_000 + "1",
    "dense code": "x=a+b;" * 12_000,
    "dense lines": "x=a+b\n" * 12_000,
    "dense code in an f-string": 'f"{' + "a+" * 30_000 + 'a}"',
    "dense code, badly indented": "  x\n y\n" + "x=a+b\n" * 12_000,
    "as much code as is allowed": "x = 1\n" * 2_900,
    "a list of 11,000 numbers": "[" + "1," * 5_900 + "]",
    "operators": "1" + "-" * 11_900 + "1",
    "brackets": "(" * 190 + "1" + ")" * 190,
    "many brackets": "(" * 11_000,
    "a chain of attributes": "a" + ".b" * 5_900,
    "a chain of comparisons": "1" + "<1" * 5_900,
    "comprehensions": "[a for a in []]\n" * 1_300,
    "lambdas": "x = " + "lambda a: " * 90 + "1",
    "a text of 900 KB": "len('" + "x" * 900_000 + "')",
    "a text of many words": "len('" + "word " * 180_000 + "')",
    "a text of many lines": "len('''" + "a\n" * 400_000 + "''')",
    "a comment of many words": "# " + "word " * 180_000 + "\n1",
    "a text of quotes": "len('" + '"' * 900_000 + "')",
    "a text that never ends": "'" + "x" * 900_000,
    "a long name": "x" * 900_000,
    "a long attribute": "file." + "x" * 900_000,
    "a long call": "file." + "x" * 900_000 + "()",
    "a long number": "9" * 900_000,
    "no text": "\0" * 900_000,
    "a snippet of a long name": "$" + "x" * 900_000,
    "a snippet with many arguments": "$x " + "a=1 " * 200_000,
    "a snippet with many lines": "$x\n" + "a: 1\n" * 150_000,
    "a snippet with spaces": "$x " + " " * 900_000,
    "tabs": "if 1:\n" + "\t" * 400_000 + "1",
    "many names that do not exist": "\n".join(f"x{n}" for n in range(5_000)),
}
RESULTS = {
    "a tag and spaces, sanitised": "__sanitize__ = True\n'<' + ' ' * 40_000",
    "tags and spaces, sanitised": "__sanitize__ = True\n('<' + ' ' * 300) * 2_000",
    "open tags, sanitised": "__sanitize__ = True\n'<external-content ' * 30_000",
    "angles, sanitised": "__sanitize__ = True\n'<' * 1_000_000",
    "angles and slashes, sanitised": "__sanitize__ = True\n'</ ' * 300_000",
    "triggers, sanitised": "__sanitize__ = True\n'__ot ' * 100_000",
    "underscores, sanitised": "__sanitize__ = True\n'_' * 1_000_000",
    "unseen characters, sanitised": "__sanitize__ = True\n'\\u202e' * 100_000",
    "4 MB of text, sanitised": "__sanitize__ = True\n'x' * 4_000_000",
    "100,000 numbers, sanitised": "__sanitize__ = True\nlist(range(100_000))",
    "prints, sanitised": "__sanitize__ = True\nfor _ in range(1_000): print('<' + ' ' * 900)",
    "40,000 rows": "[{'id': n, 'name': 'x'} for n in range(40_000)]",
    "40,000 rows, indented": "__format__ = 'json_h'\n[{'id': n, 'name': 'x'} for n in range(40_000)]",
    "12,000 rows of YAML": "__format__ = 'yml_h'\n[{'id': n, 'name': 'x'} for n in range(12_000)]",
    "12,000 rows of short YAML": "__format__ = 'yml'\n[{'id': n, 'name': 'x'} for n in range(12_000)]",
    "100,000 rows": "[{'id': n, 'name': 'x'} for n in range(100_000)]",
    "100,000 rows, indented": "__format__ = 'json_h'\n[{'id': n, 'name': 'x'} for n in range(100_000)]",
    "100,000 rows, raw": "__format__ = 'raw'\n[{'id': n, 'name': 'x'} for n in range(100_000)]",
    "a million numbers": "list(range(1_000_000))",
    "140,000 numbers": "list(range(140_000))",
    "140,000 numbers, raw": "__format__ = 'raw'\nlist(range(140_000))",
    "100,000 keys": "{f'key {n}': n for n in range(100_000)}",
    "100,000 numbers as keys": "{n: n for n in range(100_000)}",
    "60,000 tuples": "[(n, n) for n in range(60_000)]",
    "a set of 100,000": "set(range(100_000))",
    "a set of mixed kinds": "{*range(50_000), *map(str, range(50_000))}",
    "30 MB of text": "'x' * 30_000_000",
    "8 MB of wide text": "'ä€' * 2_000_000",
    "4 MB of lines": "'x\\n' * 2_000_000",
    "4 MB of data": "b'x' * 4_000_000",
    "a number of a million digits": "1 << 3_000_000",
    "a key of 8 MB": "{'k' * 8_000_000: 1}",
    "a parameter of 8 MB": "ot.help(**{'k' * 8_000_000: 1})",
    "a parameter that is long": "ot.help(query='x' * 8_000_000)",
    "a search for many words": "ot.help(query='word ' * 200_000)",
    "an argument of a million parts": "ot.help(query=list(range(1_000_000)))",
    "an argument of 140,000 parts": "ot.help(query=list(range(140_000)))",
    "a million prints": "print('x\\n' * 500_000)",
    "an error of 8 MB": "raise ValueError('x' * 8_000_000)",
    "an error of many lines": "raise ValueError('x\\n' * 1_000_000)",
    "an error of a long name": "raise type('E' * 1_000_000, (Exception,), {})('x')",
    "a name that does not exist": "raise NameError(\"name '\" + 'x' * 1_000_000 + \"' is not defined\")",
    "nests": "x = 0\nfor _ in range(60): x = [x, x]\nx",
    "texts in a list": "['x' * 1_000_000] * 8",
}
REPLIES = {
    "text": 4_000_000, "spaces": 40_000, "open tags": 30_000, "triggers": 100_000, "unseen": 100_000,
    "lines": 1_000_000, "blocks": 50_000, "pictures": 20_000, "links": 20_000, "resources": 20_000,
    "one picture": 1_000_000, "one resource": 4_000_000, "meta": 100_000, "meta keys": 60_000,
    "numbers": 1_000_000, "rows": 20_000, "keys": 60_000, "one key": 4_000_000, "failure": 4_000_000,
    "failures": 900, "structured failure": 140_000, "annotations": 50_000, "unknown blocks": 900,
    "depth": 5_000, "digits": 4_000_000, "escapes": 1_000_000, "white space": 8_000_000,
    "doubled keys": 60_000, "no object": 140_000, "refusal": 4_000_000, "refusal of many parts": 140_000,
}  # fmt: skip
NOTICES = {
    "log": 5_000, "large log": 100, "progress": 5_000, "own progress": 5_000, "list changed": 5_000,
    "resource updated": 5_000, "prompts changed": 5_000, "cancelled": 5_000, "unknown": 5_000,
}  # fmt: skip
LINES = {
    "blank lines": 1_000_000, "junk lines": 10_000, "one junk line": 8_000_000, "numbers": 20_000, "lists": 20_000,
    "answers to nobody": 5_000, "one long list": 1_000_000, "requests": 5_000, "unknown requests": 5_000,
    "depth": 100_000, "a request of many parts": 1_000_000, "a notification of many parts": 140_000,
    "standard error": 20_000,
}  # fmt: skip
QUESTIONS = {"message": 100_000, "spaces": 100_000, "properties": 2_000, "one name": 100_000, "choices": 10_000}
DEFINITIONS = {
    "many tools": 300, "one name": 100_000, "one description": 1_000_000, "spaces": 100_000, "words": 100_000,
    "properties": 5_000, "depth": 200, "choices": 50_000, "pattern": 2_000, "any of": 5_000, "output": 5_000,
    "hints": 1_000_000, "meta": 100_000,
}  # fmt: skip


def _rpc(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


CLIENT = {
    "blank lines": b"\n" * 500_000,
    "junk lines": b"junk\n" * 2_000,
    "a list of 140,000 parts": b"[" + b"0," * 140_000 + b"0]\n",
    "a nest": b"[" * 100_000 + b"\n",
    "notifications": _rpc(method="notifications/odd") * 2_000,
    "cancellations": _rpc(method="notifications/cancelled", params={"requestId": 1}) * 2_000,
    "an unknown method of 1 MB": _rpc(id="m", method="x" * 1_000_000),
    "an id of 1 MB": _rpc(id="i" * 1_000_000, method="ping"),
    "a tool of a long name": _rpc(id="n", method="tools/call", params={"name": "x" * 1_000_000, "arguments": {}}),
    "parameters nobody asked for": _rpc(id="p", method="ping", params={"a": [0] * 100_000}),
}


def _proxied(tool: str, entries: dict[str, int]) -> dict[str, Entry]:
    return {
        f"{tool}: {kind}": Entry(f"{tool}: {kind}", f"str(hostile.{tool}(kind={kind!r}, n={n}))[:100]")
        for kind, n in entries.items()
    }


def _plain(kind: str, commands: dict[str, str]) -> dict[str, Entry]:
    return {f"{kind}: {name}": Entry(f"{kind}: {name}", command) for name, command in commands.items()}


ENTRIES: dict[str, Entry] = {
    **_plain("frame", {name: f"{FORGE}{program}{WAIT}" for name, program in FRAMES.items()}),
    **_plain("command", COMMANDS),
    **_plain("result", RESULTS),
    **_proxied("reply", REPLIES),
    **_proxied("notify", NOTICES),
    **_proxied("write", LINES),
    **_proxied("ask", QUESTIONS),
    **_proxied("become", DEFINITIONS),
    **{f"client: {name}": Entry(f"client: {name}", lines=lines) for name, lines in CLIENT.items()},
}
