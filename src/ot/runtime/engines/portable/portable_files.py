"""PortableFiles: what Monty asks for when a program uses ``open``, ``os`` and ``pathlib``, as steps of the door."""

from __future__ import annotations

import ast
import errno
import json
import os
import posixpath
import stat as modes
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import anyio.to_thread
from pydantic_monty import MontyFileHandle
from pydantic_monty.os_access import ScanEntry, StatResult, path_from_arg

from ot.errors import OneToolError, RunError
from ot.runtime.engines.engine import Reach
from ot.runtime.engines.failures import builtin_exception
from ot.runtime.program import Program

MORE_BYTES = 4 << 20
MOST_DEPTH = 64
MOST_ENTRIES = 20_000
NUMBERS: dict[type[Exception], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    IsADirectoryError: errno.EISDIR,
    NotADirectoryError: errno.ENOTDIR,
}
USES = frozenset({"open", "os", "pathlib", "Path"})
"""Names without which a program means no file."""
MOST_NOTES = 4
ENCODED = {"read_text": 0, "write_text": 1}
"""Where the encoding stands among the arguments."""


class PortableFiles:
    """Answers for the files of one run."""

    def __init__(self, reach: Reach, program: Program, most_bytes: int, names: Collection[str] = ()) -> None:
        """Take steps by *reach*; a file has at most *most_bytes*. The program uses *names* beside its own, too."""
        self._reach = reach
        self._source = program.source
        self._uses = not USES.isdisjoint(program.names) or not USES.isdisjoint(names)
        self._most_bytes = most_bytes
        self._cwd = ""
        self.notes: list[str] = []

    async def start(self) -> str | None:
        """Return the start of relative paths, for a program that may use files."""
        if not self._uses:
            return None
        try:
            self._cwd = (await self._reach.file("where", {}))["cwd"]
        except RunError:
            raise
        except OneToolError:
            return None  # each step will say why
        return self._cwd

    def knows(self, name: str) -> bool:
        """Return whether *name* is a function of files."""
        return name in STEPS

    async def answer(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the result of Monty's function *name*, or raise what Python's own would."""
        return await STEPS[name](self, str(path_from_arg(args[0])), *args[1:], **kwargs)

    async def _step(self, step: str, path: str, **arguments: Any) -> Any:
        try:
            return await self._reach.file(step, ({"source": path} if step == "rename" else {"path": path}) | arguments)
        except RunError:
            raise
        except OneToolError as error:
            raise self._translate(builtin_exception(error), path) from None

    def _translate(self, error: Exception, path: str) -> Exception:
        shown = self._shorten(path)
        if number := NUMBERS.get(type(error)):
            return type(error)(number, os.strerror(number), shown)
        message = str(error).removeprefix(f"{path!r}: ")
        if isinstance(error, PermissionError):
            return PermissionError(errno.EACCES, message, shown)
        known = {os.strerror(number): number for number in errno.errorcode}
        if type(error) is OSError and (number := known.get(message)):
            return OSError(number, message, shown)
        return RuntimeError(message) if isinstance(error, TimeoutError) else error

    def _shorten(self, path: str) -> str:
        """Return *path* as the program most likely wrote it."""
        return path.removeprefix(f"{self._cwd}/") if self._cwd and self._cwd not in self._source else path

    # ---------------------------------------------------------------- looking

    async def _mode(self, path: str, *, follow: bool = True) -> int:
        """Return the mode of what is there; 0 is nothing, also where a program may not look, which is noted."""
        try:
            return (await self._step("stat", path, follow=follow))[0]
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except PermissionError as error:
            text = f"note: {path} was taken for missing: {error.strerror}"
            if text not in self.notes and len(self.notes) < MOST_NOTES:
                self.notes.append(text)
            return 0

    async def exists(self, path: str) -> bool:
        return await self._mode(path) != 0

    async def is_file(self, path: str) -> bool:
        return modes.S_ISREG(await self._mode(path))

    async def is_dir(self, path: str) -> bool:
        return modes.S_ISDIR(await self._mode(path))

    async def is_symlink(self, path: str) -> bool:
        return modes.S_ISLNK(await self._mode(path, follow=False))

    async def stat(self, path: str) -> StatResult:
        numbers = await self._step("stat", path)
        return StatResult._make([*numbers[:7], *(moment / 10**9 for moment in numbers[7:])])

    async def _pages(self, path: str, **how: bool) -> AsyncIterator[list[Any]]:
        """Yield what the directory holds, a page at a time: this is the event loop, which others wait for.

        Raises:
            ValueError: It holds more than Monty is given at once without keeping them waiting.
        """
        found: dict[str, Any] = {"more": True, "after": ""}
        count = 0
        while found["more"]:
            found = await self._step("scan", path, after=found["after"], **how)
            page: list[Any] = json.loads(found["data"])
            count += len(page)
            if count > MOST_ENTRIES:
                why = f"more than {MOST_ENTRIES:,} entries, and the portable engine lists no more: use file.glob"
                raise ValueError(f"{self._shorten(path)!r} holds {why}")
            yield page

    async def iterdir(self, path: str) -> list[PurePosixPath]:
        return [
            child
            async for page in self._pages(path, names=True)
            for child in await anyio.to_thread.run_sync(_children, path, page)
        ]

    async def scan(self, path: str, *, max_depth: int | None, follow_symlinks: bool, **_: Any) -> list[ScanEntry]:
        mode = await self._mode(path)
        if not mode:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._shorten(path))
        entries = [ScanEntry("", modes.S_ISDIR(mode), modes.S_ISREG(mode), False)]
        most = MOST_DEPTH if max_depth is None else max_depth
        waiting = [("", 0)] if modes.S_ISDIR(mode) else []
        while waiting:
            way, depth = waiting.pop()
            if depth >= most:
                continue
            rows = (row async for page in self._pages(f"{path}/{way}" if way else path) for row in page)
            async for name, own, *_rest, target in rows:
                found = own if target is None else target
                entry = ScanEntry(
                    f"{way}/{name}" if way else name, modes.S_ISDIR(found), modes.S_ISREG(found), target is not None
                )
                entries.append(entry)
                if entry.is_dir and (follow_symlinks or not entry.is_symlink):
                    waiting.append((entry.path, depth + 1))
        return entries

    async def resolve(self, path: str) -> str:
        plain = posixpath.normpath(path)
        steps = [parent for parent in (*PurePosixPath(plain).parents, plain) if str(parent).startswith(self._cwd)]
        for step in steps:
            if modes.S_ISLNK(await self._mode(str(step), follow=False)):
                raise NotImplementedError(f"{step} is a symbolic link, which the portable engine does not resolve")
        return plain

    async def absolute(self, path: str) -> str:
        return path

    # ---------------------------------------------------------------- reading and writing

    async def open(self, path: str, mode: str) -> MontyFileHandle:
        handle = MontyFileHandle(path, mode)
        if mode.startswith("r"):
            await self._step("read", path, size=0)
        else:
            await self._step("begin", path, mode=mode[0])
        return handle

    async def read_bytes(self, path: str) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            found = await self._step("read", path, offset=size, size=MORE_BYTES)
            parts.append(found["data"])
            size += len(found["data"])
            if found["stat"][6] > self._most_bytes:
                raise MemoryError(f"{path} has {found['stat'][6]:,} bytes: more than limits.value_bytes")
            if not found["data"] or size >= found["stat"][6]:
                return b"".join(parts)

    async def read_text(self, path: str) -> str:
        return (await self.read_bytes(path)).decode()

    async def write_text(self, path: str, data: str) -> int:
        await self.write_bytes(path, data.encode())
        return len(data)

    async def write_bytes(self, path: str, data: bytes) -> int:
        await self._step("begin", path, mode="w")
        return await self.append_bytes(path, data)

    async def append_text(self, path: str, data: str) -> int:
        await self.append_bytes(path, data.encode())
        return len(data)

    async def append_bytes(self, path: str, data: bytes) -> int:
        if data:
            await self._step("write", path, data=data)
        return len(data)

    # ---------------------------------------------------------------- changing

    async def mkdir(self, path: str, *, parents: bool = False, exist_ok: bool = False) -> None:
        try:
            await self._step("make", path)
        except FileNotFoundError:
            above = posixpath.dirname(path)
            if not parents or above == path:
                raise
            await self.mkdir(above, parents=True, exist_ok=True)
            await self._step("make", path)
        except FileExistsError:
            if not exist_ok or not await self.is_dir(path):
                raise

    async def unlink(self, path: str) -> None:
        await self._step("remove", path)

    async def rmdir(self, path: str) -> None:
        await self._step("remove", path, directory=True)

    async def rename(self, path: str, target: PurePosixPath) -> None:
        await self._step("rename", path, target=str(target))


type _Step = Callable[..., Awaitable[Any]]
_PATHS = (
    "exists is_file is_dir is_symlink read_text read_bytes write_text write_bytes append_text append_bytes mkdir "
    "unlink rmdir iterdir scan stat rename resolve absolute"
)
STEPS: Mapping[str, _Step] = {
    "open": PortableFiles.open,
    **{f"Path.{name}": getattr(PortableFiles, name) for name in _PATHS.split()},
}
"""What Monty knows of files, by its names."""


def _children(path: str, names: list[str]) -> list[PurePosixPath]:
    """Return the paths, each of which knows its text already: Monty asks for it in the event loop."""
    children = [PurePosixPath(path, name) for name in names]
    for child in children:
        str(child)
    return children


def without_default_encoding(program: Program) -> Program:
    """Return *program* without the ``encoding="utf-8"`` of ``read_text`` and ``write_text``: Monty takes none."""
    given = [
        argument
        for call in program.nodes
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ENCODED
        for argument in (*call.args[ENCODED[call.func.attr] :], *call.keywords)
        if _is_default_encoding(argument) and argument.lineno == argument.end_lineno
    ]
    return program.edit((*program.span(argument), "") for argument in given) if given else program


def _is_default_encoding(argument: ast.expr | ast.keyword) -> bool:
    match argument:
        case ast.keyword(arg="encoding", value=ast.Constant(value=str(name))) | ast.Constant(value=str(name)):
            return name.lower() in ("utf-8", "utf8")
        case _:
            return False
