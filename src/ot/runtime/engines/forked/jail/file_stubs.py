"""FileStubs: small functions in the place of ``open`` and those of ``os``; ``posix`` and ``_io`` stay as they are.

A zygote puts them there before any module that keeps such a function is imported. What they stand for is read then,
and compiled when a program first uses it, or when the zygote has time: most programs use no files.
"""

from __future__ import annotations

import _io
import builtins
import errno
import io
import os
import posix
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ot.runtime.engines.forked.jail.channel import Channel
    from ot.runtime.engines.forked.jail.files import ProgramFiles

FIRST_DESCRIPTOR = 1 << 20
"""Descriptors from here on are ours: the kernel gives no process so many."""
LOOKING = ("stat", "lstat", "access", "listdir", "scandir", "readlink", "listxattr", "statvfs", "open")
CHANGING = ("mkdir", "rmdir", "remove", "unlink", "chmod", "utime", "truncate")
PAIRS = ("rename", "replace", "link", "symlink")
BY_DESCRIPTOR = ("read", "write", "close", "lseek", "fstat", "fsync", "fdatasync", "ftruncate", "isatty")
OTHERS = ("getcwd", "getcwdb", "chdir")
PACKAGE = "ot.runtime.engines.forked.jail"
LATE = ("memory_files", "files", "file_functions")
"""The modules that are compiled late, in the order in which they need each other."""


class FileStubs:
    """Leaves files to the kernel until a program runs, then to what is loaded at its first use of them."""

    def __init__(self, readable: Sequence[str]) -> None:
        """Read what will be loaded; the kernel is to answer for the paths *readable*."""
        self._readable = readable
        directory = __file__.rpartition("/")[0]
        self._texts = {f"{PACKAGE}.{name}": _read(f"{directory}/{name}.py") for name in LATE}
        self._own = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("ot", "ot_sdk")}
        self._channel: Channel | None = None
        self._files: ProgramFiles | None = None
        self._functions: dict[str, Callable[..., Any]] = {}
        self._begun = False

    def begin(self, channel: Channel) -> None:
        """Let the program's files be asked for through *channel* from now on."""
        self._channel = channel

    def flush(self) -> None:
        """Send all that the program's files still hold."""
        if self._begun and self._files:
            self._files.flush()

    def end(self) -> list[str]:
        """Return the notes for the reply."""
        return self._files.end() if self._begun and self._files else []

    def load(self) -> ProgramFiles:
        """Return the files, with their modules compiled; programs find none of these among theirs."""
        if self._files is None:
            before = {name: module for name, module in sys.modules.items() if name in {**self._own, **self._texts}}
            sys.modules.update(self._own)
            try:
                for name, text in self._texts.items():
                    sys.modules[name] = module = types.ModuleType(name)
                    exec(compile(text, f"<{name}>", "exec", dont_inherit=True), vars(module))
                late: Any = sys.modules
                self._files = late[f"{PACKAGE}.files"].ProgramFiles(self._readable)
                self._functions = late[f"{PACKAGE}.file_functions"].functions_of(self._files)
            finally:
                for name in {**self._own, **self._texts}:
                    del sys.modules[name]
                sys.modules.update(before)
        assert self._files
        return self._files

    def install(self) -> None:
        """Put the stubs in their places."""
        for name in (*LOOKING, *CHANGING, *PAIRS, *OTHERS):
            _put(name, self._stub(name, getattr(posix, name)))
        for name in BY_DESCRIPTOR:
            _put(name, self._descriptor_stub(name, getattr(posix, name)))
        _put("system", _system)
        builtins.input = _input
        sys.meta_path.insert(0, _AtImport("sqlite3", self._let_connect))
        builtins.open = io.open = self._stub("builtins", _io.open)  # pyright: ignore[reportAttributeAccessIssue] - as said above
        io.open.__name__ = io.open.__qualname__ = "open"

    def _function(self, name: str) -> Callable[..., Any]:
        if not self._begun and self._channel:
            self.load().begin(self._channel)
            self._begun = True
        return self._functions[name]

    def _stub(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            if self._channel is None:
                return kernel(*args, **kwargs)
            return self._function(name)(*args, **kwargs)

        return function

    def _let_connect(self, module: types.ModuleType) -> None:
        """Let the *module* open databases of the workspace: SQLite itself asks the kernel, which refuses."""
        kernel = vars(module)["connect"]

        def connect(*args: Any, **kwargs: Any) -> Any:
            return self._function("sqlite3")(kernel, *args, **kwargs) if self._channel else kernel(*args, **kwargs)

        vars(module)["connect"] = vars(module)["dbapi2"].connect = connect

    def _descriptor_stub(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def function(fd: Any, *args: Any) -> Any:
            mine = isinstance(fd, int) and fd >= FIRST_DESCRIPTOR
            return self._function(name)(fd, *args) if mine else kernel(fd, *args)

        return function


class _AtImport:
    """A finder that changes one module when it is first imported."""

    def __init__(self, name: str, change: Callable[[types.ModuleType], None]) -> None:
        self._name = name
        self._change = change

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec that others find for the module, with a loader that changes it."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)  # pyright: ignore[reportArgumentType] - a finder needs no more than this
        found = next(spec for finder in sys.meta_path if (spec := finder.find_spec(name, path, target)))
        loader: Any = found.loader
        load = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            load(module)
            self._change(module)

        loader.exec_module = exec_module
        return found


def _read(path: str) -> bytes:
    with _io.open(path, "rb") as file:
        return file.read()


def _system(command: Any) -> int:
    """Fail aloud: the kernel's refusal would only be a number."""
    raise PermissionError(errno.EPERM, "programs cannot start processes")


def _input(prompt: Any = "", /) -> str:
    raise EOFError("programs cannot ask for input: write the value into the program")


def _put(name: str, function: Callable[..., Any]) -> None:
    function.__name__ = function.__qualname__ = name
    follows = getattr(os, name) in os.supports_follow_symlinks
    setattr(os, name, function)
    if follows:
        os.supports_follow_symlinks.add(function)
