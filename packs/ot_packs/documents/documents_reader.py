"""The child process: reads one document from standard input and writes JSON to standard output.

It is run as a script. It bounds itself first, then loads what the kind of document needs, and then can neither
open another file nor reach the network nor start a program.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - as a script in isolated mode

from documents_archive import OfficePackage
from documents_kinds import ARCHIVES, READERS, AnyDocument, BadDocument, kind_of

AROUND = 100
"""Characters that are shown on each side of what a search found."""
MAX_CELLS = 2_000_000
MAX_PAGES = 5_000
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
CLOSED_DOORS = ("socket.", "subprocess.", "urllib.", "ftplib.", "http.", "smtplib.", "webbrowser.", "os.exec")
CLOSED_CALLS = frozenset(
    {"os.system", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.remove", "os.rename", "os.mkdir"}
)


def main() -> None:
    """Answer the request that is the only argument."""
    request = json.loads(sys.argv[1])
    _set_limits(request["limits"])
    try:
        answer = {"value": _answer(request)}
    except BadDocument as error:
        answer = {"error": str(error)}
    except RecursionError:
        answer = {"error": "cannot be read: it is nested too deeply"}
    except MemoryError:
        answer = {"error": _over("memory", request["limits"]["memory_bytes"], "memory_bytes")}
    except BaseException as error:  # noqa: BLE001 - libraries meet hostile input here, and a Rust panic is not an Exception
        answer = {"error": f"cannot be read: {type(error).__name__}: {CONTROL.sub('', str(error))[:200]}"}
    data = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    most = request["limits"]["output_bytes"]
    if len(data) > most:
        data = json.dumps({"error": f"gives {_over('text', most, 'output_bytes')}: ask for fewer pages"}).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    os._exit(0)  # nothing of the document is worth an orderly end, which can crash in a library


def _over(what: str, most: int, setting: str) -> str:
    verb = "needs " if what == "memory" else ""
    return f"{verb}more than {most:,} bytes of {what} (tools.documents.{setting})"


def _set_limits(limits: dict[str, Any]) -> None:
    seconds = max(1, round(limits["seconds"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits["output_bytes"] + 4096, limits["output_bytes"] + 4096))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (limits["memory_bytes"], limits["memory_bytes"]))
    signal.setitimer(signal.ITIMER_REAL, limits["seconds"])  # ends the process even if nobody waits for it any more


def _answer(request: dict[str, Any]) -> Any:
    data = sys.stdin.buffer.read(request["limits"]["input_bytes"] + 1)
    kind = kind_of(data, request["path"])
    source = OfficePackage(data, request["limits"]["unpacked_bytes"]) if kind in ARCHIVES else data
    reader = import_module(READERS[kind])
    _close_doors()
    document: AnyDocument = reader.open_document(source, kind)
    match request["action"]:
        case "info":
            return _info(document, request, len(data))
        case "markdown":
            return _markdown(document, _numbers(document, request["pages"]))
        case "pages":
            return [_page(document, number) for number in _numbers(document, request["pages"])]
        case "tables":
            return _tables(document, request)
        case _:
            return _search(document, request)


def _close_doors() -> None:
    """Refuse files, network and programs from now on; only the interpreter's own modules may still be loaded."""
    homes = tuple({os.path.realpath(path) + os.sep for path in (sys.prefix, sys.base_prefix, *sys.path) if path})

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            inside = isinstance(path, str) and os.path.realpath(path).startswith(homes)
            if not inside or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                raise PermissionError("a document must not open files")
        elif event.startswith(CLOSED_DOORS) or event in CLOSED_CALLS:
            raise PermissionError(f"a document must not use {event}")

    sys.addaudithook(refuse)


# ---------------------------------------------------------------- answers


def _clean(text: str) -> str:
    return CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _numbers(document: AnyDocument, ranges: Sequence[tuple[int, int | None]] | str | None) -> list[int]:
    if isinstance(ranges, str):
        return [_sheet_number(document, ranges)]
    numbers: dict[int, None] = {}
    for first, last in ranges or [(1, None)]:
        if first > document.count and ranges is not None:
            raise BadDocument(f"has {document.count:,} {document.unit}(s), and no {document.unit} {first:,}")
        last = min(document.count, document.count if last is None else last)
        if last - first + len(numbers) >= MAX_PAGES:
            raise BadDocument(f"has more than {MAX_PAGES:,} {document.unit}s there: read some of them, with pages=")
        numbers.update(dict.fromkeys(range(first, last + 1)))
    return list(numbers)


def _info(document: AnyDocument, request: dict[str, Any], size: int) -> dict[str, Any]:
    about = {name: _clean(value)[:1000] for name, value in document.about().items()}
    known = {"title": "", "author": "", "created": "", "modified": "", **about}
    names = [_clean(name) for name in document.names]
    return {
        "path": request["path"],
        "kind": document.kind,
        "bytes": size,
        "unit": document.unit,
        "count": document.count,
        "names": names,
        **known,
    }


def _page(document: AnyDocument, number: int) -> dict[str, Any]:
    title, text = document.page(number)
    return {"page": number, "title": " ".join(_clean(title).split())[:200], "text": _clean(text).strip()}


def _markdown(document: AnyDocument, numbers: list[int]) -> str:
    texts: list[str] = []
    for number in numbers:
        text = _clean(document.page(number)[1]).strip()
        marked = document.unit in ("page", "slide")
        texts.append(f"<!-- {document.unit} {number} -->\n\n{text}".rstrip() if marked else text)
    return "\n\n".join(texts)


def _search(document: AnyDocument, request: dict[str, Any]) -> dict[str, Any]:
    words = map(re.escape, request["text"].split())
    wanted = re.compile(r"\s+".join(words), re.IGNORECASE if request["ignore_case"] else 0)
    places: list[dict[str, Any]] = []
    has_text = False
    for number in _numbers(document, None):
        text = _clean(document.plain(number))
        has_text = has_text or bool(text.strip())
        for found in wanted.finditer(text):
            if len(places) == request["limit"]:
                return {"places": places, "more": True}
            around = text[max(0, found.start() - AROUND) : found.end() + AROUND]
            places.append({"page": number, "text": " ".join(around.split())})
    if document.kind == "pdf" and not has_text:
        raise BadDocument("has no text to search: its pages are images, such as scans")
    return {"places": places, "more": False}


# ---------------------------------------------------------------- tables


def _tables(document: AnyDocument, request: dict[str, Any]) -> list[dict[str, Any]]:
    page, sheet = request["page"], request["sheet"]
    numbers = _numbers(document, sheet if sheet is not None else page and [(page, page)])
    tables: list[dict[str, Any]] = []
    cells = 0
    for number in numbers:
        for name, rows in document.tables(number):
            tables.append(table := _table(name, number, iter(rows), request))
            cells += (len(table["rows"]) + 1) * len(table["columns"])
            if cells > MAX_CELLS:
                raise BadDocument(
                    f"has more than {MAX_CELLS:,} cells there: ask with page=, sheet= or a smaller limit="
                )
    return tables


def _sheet_number(document: AnyDocument, sheet: str) -> int:
    if sheet in document.names:
        return document.names.index(sheet) + 1
    names = ", ".join(map(repr, document.names))[:500]
    instead = f"its sheets are {names}" if names else 'pages must look like 3, "1-3,7" or "10-" and count from 1'
    raise BadDocument(f"has no sheet {sheet!r:.100}; {instead}")


def _table(name: str, number: int, rows: Iterator[list[Any]], request: dict[str, Any]) -> dict[str, Any]:
    head: list[Any] = next(rows, []) if request["header"] else []
    kept: list[list[Any]] = []
    more = False
    for row in rows:
        if len(kept) == request["limit"]:
            more = True
            break
        kept.append([_clean(cell) or None if isinstance(cell, str) else cell for cell in row])
    columns = _columns(head, max([len(head), *map(len, kept)], default=0))
    whole = [dict(zip(columns, row + [None] * (len(columns) - len(row)), strict=True)) for row in kept]
    return {"name": _clean(name), "page": number, "columns": columns, "rows": whole, "more": more}


def _columns(head: list[Any], width: int) -> list[str]:
    """Return a name for each column; an empty one gets its letter, one that is there already a number."""
    columns: dict[str, None] = {}
    for place in range(width):
        cell = head[place] if place < len(head) else None
        name = " ".join(_clean(str(cell)).split()) if cell is not None else ""
        name = base = name or _letter(place)
        again = 2
        while name in columns:
            name, again = f"{base}_{again}", again + 1
        columns[name] = None
    return list(columns)


def _letter(place: int) -> str:
    return (_letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


if __name__ == "__main__":
    main()
