"""Programs that attack the server through their own run: forged messages, floods, and objects that misbehave.

Each must end as a run ends, with a value or an error of the run, and leave the server and other runs as they were.
"""

from __future__ import annotations

TOOLS = """
import json, os, struct, sys
def send(message, number=0):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    raw(struct.pack("!II", len(data), number) + data)
def raw(data):
    while data:
        data = data[os.write(3, data):]
def end(**more):
    send({"t": "end", "dropped": 0, "magic": {}, **more})
def call(pack="pack", name="echo", args=(), number=1, **more):
    send({"t": "call", "p": pack, "f": name, "a": list(args), "k": [], "w": [], **more}, number)
def tagged(kind, value):
    return {"$ot": kind, "v": value}
def wait(seconds=0.1):
    import time
    time.sleep(seconds)
"""
SAME_HASH = "[tagged('int', hex(n * (2**61 - 1))) for n in range(1, 20001)]"

FORGED: dict[str, str] = {
    "an end, then calls": "end(v=1)\nfor n in range(1, 50): call(number=n)\nwait()",
    "two ends": "end(v=1)\nend(v=2)\nwait()",
    "an end while calls are under way": "for n in range(1, 30): call(name='slow', number=n)\nend(v=1)\nwait()",
    "a size of four gibibytes": "raw(b'\\xff' * 8)\nwait()",
    "a message cut short": "raw(struct.pack('!II', 100, 0) + b'{')\nos._exit(0)",
    "a header cut short": "raw(b'\\0\\0\\0')\nos._exit(0)",
    "no JSON": "send(b'\\xff\\xfe{')\nwait()",
    "a list": "send([1, 2])\nwait()",
    "nothing": "send(b'')\nwait()",
    "no type": "send({})\nwait()",
    "a type that is a list": "send({'t': []})\nwait()",
    "a nest of a hundred thousand lists": "send(b'{\"t\":\"end\",\"v\":' + b'[' * 100000 + b']' * 100000 + b'}')\nwait()",  # noqa: E501 - one program
    "a value of many parts": 'send(b\'{"t":"end","magic":{},"v":[\' + b\'0,\' * 7000000 + b\'0]}\')\nwait()',
    "a nest of tagged tuples": "v = 0\nfor _ in range(200): v = tagged('tuple', [v])\nend(v=v)\nwait()",
    "an unknown tag": "end(v=tagged('os.system', 'true'))\nwait()",
    "a tag that is a list": "end(v=tagged([], 1))\nwait()",
    "a tag with more": "end(v={**tagged('int', '0x1'), 'x': 1})\nwait()",
    "bytes that are none": "end(v=tagged('bytes', '***'))\nwait()",
    "a malformed date": "end(v=tagged('datetime', '9999-99-99'))\nwait()",
    "an endless decimal": "end(v=tagged('decimal', '1E+999999999'))\nwait()",
    "an int of a million digits": "end(v=tagged('int', '0x' + 'f' * 1000000))\nwait()",
    "a dict with a list as key": "end(v=tagged('dict', [[[1], 2]]))\nwait()",
    "a dict with a key twice": "end(v=tagged('dict', [[1, 2], [True, 3]]))\nwait()",
    "a set whose items have one hash": f"end(v=tagged('set', {SAME_HASH}))\nwait()",
    "a dict whose keys have one hash": f"end(v=tagged('dict', [[n, 0] for n in {SAME_HASH}]))\nwait()",
    "an argument whose items have one hash": f"call(args=[tagged('set', {SAME_HASH})])\nwait(4)",
    "one number for many calls": "for n in range(200): call(number=7)\nwait()",
    "the largest number": "call(number=2**32 - 1)\nwait()",
    "a call of another pack": "call(pack='secret')\nwait()",
    "a call of a class": "call(name='__class__')\nwait()",
    "a call of a path": "call(pack='pack.echo', name='../echo')\nwait()",
    "a call of a number": "call(pack=1, name=None)\nwait()",
    "a call without arguments": "send({'t': 'call', 'p': 'pack', 'f': 'echo'}, 1)\nwait()",
    "arguments that are a text": "send({'t': 'call', 'p': 'pack', 'f': 'echo', 'a': 'xy', 'k': 'xy', 'w': 'xy'}, 1)\nwait()",  # noqa: E501 - one program
    "more names than values": "call(k=['a', 'b'], w=[1])\nwait()",
    "a request of an unknown kind": "call(t='exec')\nwait()",
    "a print that is a list": "send({'t': 'print', 'o': [1]})\nwait()",
    "dropped text below zero": "end(v=1, dropped=-10**6)\nwait()",
    "dropped text without end": 'send(b\'{"t":"end","magic":{},"dropped":1e999}\')\nwait()',
    "dropped text that is a text": "end(v=1, dropped='x' * 100)\nwait()",
    "wishes that are a list": "end(v=1, magic=[1])\nwait()",
    "a wish that is a dict": "end(v=1, magic={'format': {'a': 1}, 'sanitize': [2]})\nwait()",
    "an error that is a number": "end(error=5)\nwait()",
    "an error of a megabyte": "end(error=['E' * 10**6, 'm' * 10**6, 10**30])\nwait()",
    "an error of two lists": "end(error=[[1] * 10**6, [2] * 10**6, 3])\nwait()",
    "a member of a long name": "send({'t': 'member', 'p': 'pack', 'f': 'r' * 30_000_000}, 1)\nwait()",
    "a call of a long name": "call(name='r' * 30_000_000)\nwait()",
    "a call in a pack of a long name": "call(pack='r' * 30_000_000)\nwait()",
    "a call with a long parameter": "call(k=['r' * 30_000_000], w=[1])\nwait()",
    "an error with a terminal's escapes": "end(error=['E', '\\x1b]0;x\\x07', True])\nwait()",
}
FLOODS: dict[str, str] = {
    "prints": "said = json.dumps({'t': 'print', 'o': ''}).encode()\nline = struct.pack('!II', len(said), 0) + said\n"
    "while True: raw(line * 2000)",
    "prints beyond the cap": "while True: send({'t': 'print', 'o': 'x' * 60000})",
    "lookups": "ask = json.dumps({'t': 'member', 'p': 'pack', 'f': 'echo'}).encode()\n"
    "while True: raw((struct.pack('!II', len(ask), 1) + ask) * 500)",
    "lookups of what is not there": "ask = json.dumps({'t': 'member', 'p': 'pack', 'f': 'nothing'}).encode()\n"
    "while True: raw((struct.pack('!II', len(ask), 1) + ask) * 500)",
    "calls": "while True: call()",
    "slow calls": "while True: call(name='slow')",
    "large calls": "while True: call(args=['x' * 1000000])",
    "honest prints": "while True: print('x' * 1000)",
    "honest prints, one by one": "while True: print('x', flush=True)",
}
OBJECTS: dict[str, str] = {
    "an error whose text raises": "class E(Exception):\n    def __str__(self): raise E\nraise E",
    "an error whose text is none": "class E(Exception):\n    def __str__(self): return 5\nraise E",
    "an error whose text never ends": "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
    "an error whose text leaves": "class E(Exception):\n    def __str__(self): os._exit(0)\nraise E",
    "an error with a long name": "raise type('E' * 10**6, (Exception,), {})('x' * 10**6)",
    "an error that is an exit": "raise SystemExit(3)",
    "a keyboard interrupt": "raise KeyboardInterrupt",
    "an error that lies about its class": "class E(Exception):\n    __class__ = dict\nraise E('x')",
    "an endless generator": "def g():\n    while True: yield 1\ng()",
    "a dict that never ends": "class D(dict):\n    def __iter__(self):\n        while True: yield 1\n"
    "    def keys(self): return self\n    def __getitem__(self, k): return 1\n    def items(self):\n"
    "        while True: yield 1, 1\nD(a=1)",
    "fields that lie": "class D:\n    __dataclass_fields__ = {str(n): 1 for n in range(10)}\n"
    "    def __getattr__(self, n): return D()\nD()",
    "a list that holds itself": "x = []\nx.append(x)\nx",
    "a text that is not": "class S(str):\n    def __str__(self): return 5\n    def encode(self, *a): return b'x'\n[S('a'), {S('b'): S('c')}]",  # noqa: E501 - one program
    "a finaliser at the end": "class F:\n    def __del__(self): os.write(3, b'x' * 100)\nf = F()\n1",
    "an exit handler": "import atexit\natexit.register(lambda: os.write(3, b'x' * 100))\n1",
    "a thread that goes on": "import threading\ndef f():\n    while True: os.write(3, b'x' * 8)\n"
    "threading.Thread(target=f, daemon=True).start()\n1",
    "frames of the jail": "frame = sys._getframe()\nwhile frame.f_back: frame = frame.f_back\n"
    "found = [v for f in [frame] for v in f.f_locals.values()]\n[type(v).__name__ for v in found]",
    "the channel, found by the collector": "import gc\nfor o in gc.get_objects():\n"
    "    if type(o).__name__ == 'Channel': o._write = lambda fd, data: os.write(fd, b'\\xff' * 16)\n1",
    "builtins that lie": "import builtins\nbuiltins.len = lambda x: 10**9\nbuiltins.isinstance = lambda *a: True\nbuiltins.type = str\n[1]",  # noqa: E501 - one program
    "modules taken away": "for name in list(sys.modules): del sys.modules[name]\n1",
    "json that lies": "json.dumps = json.loads = None\njson.JSONEncoder.encode = lambda *a: '{'\n[1]",
    "the socket closed": "os.close(3)\n1",
    "the socket replaced": "a, b = os.pipe()\nos.dup2(b, 3)\n1",
    "a null pointer": "import ctypes\nctypes.string_at(0)",
    "an abort": "os.abort()",
    "a silent exit": "os._exit(0)",
    "recursion without a bound": "sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "an alarm": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.001)\nwhile True: pass",
    "a tracer": "sys.settrace(lambda *a: 1 / 0)\ndef f(): pass\nf()",
    "standard output that raises": "class O:\n    def write(self, t): raise OSError\n    flush = write\nsys.stdout = O()\nprint(1)",  # noqa: E501 - one program
}
EVERY = {
    **{f"forged: {name}": source for name, source in FORGED.items()},
    **{f"flood: {name}": source for name, source in FLOODS.items()},
    **{f"object: {name}": source for name, source in OBJECTS.items()},
}


def programs() -> dict[str, str]:
    """Return every attack by its name, as a whole program."""
    return {name: f"{TOOLS}\n{source}\n" for name, source in EVERY.items()}
