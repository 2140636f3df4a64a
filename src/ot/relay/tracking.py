"""What a relay must know of the messages that pass: which requests are open, and what a new server has to be told."""

from __future__ import annotations

from _json import encode_basestring_ascii, make_scanner

TYPE_CHECKING = False  # as typing has it, whose import takes longer than the relay takes to start
if TYPE_CHECKING:
    from typing import Any

ANSWER_HEAD = b'{"jsonrpc":"2.0","id":'
HEAD_BYTES = 200
"""As much of an answer is read: it begins with its id, and what follows may be long."""
REPEATED = (
    "initialize",
    "ping",
    "tools/list",
    "resources/",
    "prompts/",
    "completion/",
    "logging/setLevel",
    "server/discover",
)
"""Requests that change nothing: asked again of a new server, where the old one left them open."""
GREETINGS = ("initialize", "server/discover")
TOLD_AGAIN = ("notifications/initialized", "logging/setLevel")
LOST = "the server ended before this call was answered, and its effect is not known; the next call starts it anew"
NOT_CALLED = (
    "the server ended while a call of %s waited for its user's answer. That call was not made; what the program did "
    "before it stays done. The next call starts the server anew"
)
CLOSED = b'"message":"Connection closed"'
"""What the protocol's library answers to the open requests of a server that ends; it says nothing of their effect."""
NOT_SENT = "no server could be started, so nothing was done: %s; the next call tries again"
ASKS = "onetool/asks"
"""What a shared server tells a relay: for which call of a tool a request waits; none, before an answer counts."""
KEPT = "onetool/kept"
"""What a relay asks of a server that is its client's alone: what would be lost with it."""
KEPT_QUESTION = b'{"jsonrpc":"2.0","id":"onetool/kept","method":"onetool/kept"}\n'


class _Plain:
    """How JSON is read: as ``json.loads`` does, whose import takes as long as all of the relay."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the reader wants it, and empties it after each text


scan = make_scanner(_Plain())  # pyright: ignore[reportArgumentType] - it reads these attributes and no others


class Traffic:
    """The requests that are open in both directions."""

    def __init__(self) -> None:
        """Begin with a client that has said nothing."""
        self.open: dict[object, tuple[str, bytes]] = {}
        """The client's requests by id: their methods, and their lines where they may be repeated."""
        self.asked: set[object] = set()
        """The ids of the server's own questions that the client has not answered."""
        self._waiting: dict[object, object] = {}
        """By request, the tool that waits for an answer: it is not called before the server says otherwise."""
        self._greeting = b""
        """The server's answer to initialize."""
        self._told: dict[str, tuple[object, bytes]] = {}
        self._unheard: set[object] = set()
        """Requests that were repeated only so that a new server knows what the old one did."""
        self.kept: object = None
        """What the server answered when it was last asked for what it keeps."""

    def sent(self, line: bytes) -> bool:
        """Take note of a line of the client, and return whether it is for the server that is there now."""
        message = _read(line)
        identity, method = _identity(message.get("id")), message.get("method")
        if identity is None:
            self._note_notification(method, message.get("params"), line)
        elif not isinstance(method, str):
            known = identity in self.asked
            self.asked.discard(identity)
            return known
        else:
            self.open[identity] = (method, line if method.startswith(REPEATED) else b"")
            if method in (*GREETINGS, *TOLD_AGAIN):
                self._told[method] = (identity, line)
        return True

    def _note_notification(self, method: object, params: Any, line: bytes) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            self.open.pop(_identity(params.get("requestId")), None)  # pyright: ignore - any JSON; nobody answers it any more
        elif method in TOLD_AGAIN:
            self._told[str(method)] = (None, line)

    def receive(self, line: bytes) -> bytes:
        """Take note of a line of the server, and return what the client is to see."""
        found = _head(line) or _read(line)
        if (identity := _identity(found.get("id"))) is None:
            return self._note_waiting(found["params"]) if found.get("method") == ASKS else line
        if "method" in found:
            self.asked.add(identity)
            return line
        if identity == KEPT and identity not in self.open:
            self.kept = _read(line).get("result", False)
            return b""
        method, _ = self.open.pop(identity, ("", b""))
        if identity in self._unheard:
            self._unheard.discard(identity)
            return self._changes(line) if self._told.get("initialize", (None,))[0] == identity else b""
        if method == "initialize":
            self._greeting = line
        return self._fail(identity) if CLOSED in line[:HEAD_BYTES] and "error" in _read(line) else line

    def _note_waiting(self, told: dict[str, Any]) -> bytes:
        if told["tool"]:
            self._waiting[told["requestId"]] = told["tool"]
        else:
            self._waiting.pop(told["requestId"], None)
        return b""

    def _fail(self, identity: object) -> bytes:
        """Answer a request that its server has left: whether a call was made is known while it waits."""
        tool = self._waiting.get(identity)
        return _encode_failure(identity, NOT_CALLED % tool if tool else LOST)

    def _changes(self, greeting: bytes) -> bytes:
        """Return the notifications about a new server: that the tools changed, if it is another version."""
        changed, self._greeting = greeting != self._greeting, greeting
        return b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n' if changed else b""

    def is_idle(self) -> bool:
        """Return whether nobody waits for an answer."""
        return not self.open and not self.asked

    def is_greeted(self) -> bool:
        """Return whether the server has answered a greeting, or the client has none: it works."""
        greetings = {self._told[method][0] for method in GREETINGS if method in self._told}
        return not greetings & (self._unheard | self.open.keys())

    def fail_unrepeatable(self) -> bytes:
        """Return the client's errors when the server has gone: only repeatable requests stay open."""
        lines = [_encode_cancel(identity) for identity in self.asked]
        lines += [self._fail(identity) for identity, (_, line) in self.open.items() if not line]
        self.asked.clear()
        self._waiting.clear()
        self.open = {identity: request for identity, request in self.open.items() if request[1]}
        return b"".join(lines)

    def give_up(self, why: str) -> bytes:
        """Return the client's errors when no server takes its requests: nothing stays open."""
        lines = [_encode_failure(identity, NOT_SENT % why) for identity in self.open]
        self.open.clear()
        return b"".join(lines)

    def list_repeatable(self) -> list[bytes]:
        """Return the open requests that a new server can be asked again."""
        return [line for _, line in self.open.values() if line]

    def begin_greeting(self) -> list[bytes]:
        """Return the first message for a new server: the client's greeting."""
        self._unheard = {identity for identity, _ in self._told.values() if identity not in self.open} - {None}
        return [line for _, line in self._told.values()]


def _read(line: bytes) -> dict[str, Any]:
    """Return the message of a line; an empty one if it is malformed, of which the server says what is wrong."""
    try:
        message = scan(line.decode().strip(), 0)[0]
    except (ValueError, StopIteration, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType] - any JSON


def _identity(value: object) -> str | float | None:
    return value if isinstance(value, str | float | int) else None


def _head(line: bytes) -> dict[str, Any] | None:
    """Return the id of an answer without reading what it says."""
    if not line.startswith(ANSWER_HEAD):
        return None
    head = line[:HEAD_BYTES].decode(errors="replace")
    try:
        identity, end = scan(head, len(ANSWER_HEAD))
    except (ValueError, StopIteration):
        return None
    return {"id": identity} if head.startswith((',"result"', ',"error"'), end) else None


def _json(identity: object) -> bytes:
    return (encode_basestring_ascii(identity) if isinstance(identity, str) else repr(identity)).encode()


def _encode_failure(identity: object, why: str) -> bytes:
    return b'%s%s,"error":{"code":-32000,"message":%s}}\n' % (ANSWER_HEAD, _json(identity), _json(why))


def _encode_cancel(identity: object) -> bytes:
    told = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"%s"}}\n'
    return told % (_json(identity), b"the server that asked has ended")
