"""Every error that ot_sdk raises on purpose, as classes that carry data.

    SdkError
    ├── OutsideWorker       asked for something that only a worker, or a test's stand-in, has
    ├── NoConfig            the pack has no settings to read
    ├── SettingsError       the settings do not fit the pack's Config
    ├── PackError           the pack's file cannot be used
    ├── ProtocolMismatch    server and worker speak different versions
    ├── UnknownTool
    ├── InvalidArguments
    ├── ToolTimeout         the call's time was over
    ├── SecretNotGranted    the pack was not given this secret
    ├── ToolCallFailed      a tool of another pack, called from here, ended without a value
    ├── ChatError           a question to the server's model got no answer
    ├── NotPlain            a value is not plain data and cannot cross
    │   ├── TooDeep
    │   └── TooMany
    ├── ResultTooLarge      a value is larger than can be sent or spooled
    └── FrameTooLarge       one message is larger than the wire takes
    Cancelled               raised inside a tool's thread; not an Exception, so that no tool catches it by accident

What a pack may want to read is a field, and its text is made in ``__str__``.
"""

from __future__ import annotations


class SdkError(Exception):
    """The root of everything that ot_sdk raises on purpose."""


class OutsideWorker(SdkError):
    """There is no worker here, and no test has put anything in its place."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"ot_sdk.{self.what} works in a worker; in a test write `with ot_sdk.testing.use(...):` around the call"


class NoConfig(SdkError):
    """The pack has no settings to read, or not yet."""


class SettingsError(SdkError):
    """The settings do not fit the pack's Config."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(key, problem)
        self.key = key
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.key}: {self.problem}"


class PackError(SdkError):
    """The pack's file cannot be used."""


class ProtocolMismatch(SdkError):
    """Server and worker speak different versions of the protocol."""


class UnknownTool(SdkError):
    """The pack has no such tool."""


class InvalidArguments(SdkError):
    """A call's arguments cannot be read."""


class ToolTimeout(SdkError):
    """The call's time was over."""


class SecretNotGranted(SdkError):
    """The pack was not given this secret."""

    def __init__(self, name: str, pack: str) -> None:
        super().__init__(name, pack)
        self.name = name
        self.pack = pack

    def __str__(self) -> str:
        line = f'__ot_requires__ = {{"secrets": ["{self.name}"]}}'
        return (
            f"pack '{self.pack}' was not given the secret '{self.name}': put it into secrets.yaml or the environment, "
            f"and make sure that the pack's file declares it, {line}"
        )


class ToolCallFailed(SdkError):
    """A tool that was called through the server ended without a value; *kind* is the name of what it raised."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


class ChatError(SdkError):
    """A question to the server's model got no answer; *kind* is the name of what the server raised."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class NotPlain(SdkError):
    """A value is not plain data; *path* says where in it, *type_name* what stands there."""

    def __init__(self, path: str, type_name: str) -> None:
        super().__init__(path, type_name)
        self.path = path
        self.type_name = type_name

    def within(self, key: object) -> None:
        """Note that the path so far lies below *key*."""
        self.path = f"[{key!r:.80}]{self.path}"

    def __str__(self) -> str:
        return f"value{self.path}: {self.type_name} is not plain data: return text, numbers, lists, dicts and the like"


class TooDeep(NotPlain):
    """A value is nested too deeply, or holds itself."""

    def __str__(self) -> str:
        return f"value{self.path[:200]}: {self.type_name} is nested too deeply"


class TooMany(NotPlain):
    """A value holds too many parts."""

    def __str__(self) -> str:
        return f"value{self.path}: too many parts, or an iterator without end"


class ResultTooLarge(SdkError):
    """A value is larger than can be sent, and could not be put into a file either."""


class FrameTooLarge(SdkError):
    """One message is larger than the wire takes."""


class Cancelled(BaseException):
    """The server cancelled the call that this thread carries out."""

    def __str__(self) -> str:
        return "the call was cancelled"
