"""What a reader's process does: turns bodies from the web into text, links, tables and values.

It runs as a program of its own (`python -I web_reading.py MEGABYTES`), which may be killed at any time: hostile pages
may make a parser slow, large or crash. Questions and answers are JSON, each after its length.
"""

from __future__ import annotations

import codecs
import importlib
import json
import logging
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, cast
from urllib.parse import urldefrag, urljoin

HEAD = struct.Struct(">II")
READY = b"r"
"""What comes before a reply, once all that it needs is imported."""
DECLARED = re.compile(rb"""(?:charset|encoding)\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
NOT_OF_PAGES = {"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7"}
"""Codecs of Python that are slow, or make of plain text something else, and that web pages do not use."""
AS_BROWSERS_DO = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}
HTML = ("text/html", "application/xhtml+xml")
TEXTS = ("application/json", "application/xml", "application/javascript", "application/yaml", "application/x-ndjson")
SNIFFED = ("", "application/octet-stream")
MAX_CELLS = 100_000
MAX_COLUMNS, MAX_ROWS = 1000, 65534
"""The most that one cell spans in browsers."""
SHORT_PAGE = 2000
BLANKS = re.compile(r"\s+")
LINK = re.compile(r"\]\(([^\s()]+)\)")
"""Where a link in Markdown leads."""


class Unreadable(Exception):
    """The body is not what was asked for; the text says what it is."""


# ---------------------------------------------------------------- text


def decode(body: bytes, charset: str) -> str:
    """Return *body* as text: by its mark, what the server said, as UTF-8, what the page says, or what it looks like."""
    for mark, name in BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    declared = DECLARED.search(body[:4096])
    said, written = _codec(charset), _codec(declared[1].decode("ascii", "replace") if declared else "")
    # What is valid as UTF-8 is UTF-8, whatever is declared; many servers call everything Latin-1.
    codecs_named = ["utf-8", said] if said == "cp1252" else [name for name in (said, "utf-8", written) if name]
    for name in codecs_named:
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            continue
    text = body.decode(said or "utf-8", "replace")
    if text.count("\ufffd") * 1000 <= len(text):
        return text  # a few damaged characters make no other encoding
    from charset_normalizer import from_bytes  # noqa: PLC0415 - few pages need a guess

    guess = from_bytes(body[:65536]).best()
    return body.decode(guess.encoding if guess else "cp1252", "replace")


def _codec(name: str) -> str:
    try:
        found = codecs.lookup(name.strip("\"' ")).name
    except (LookupError, ValueError):
        return ""
    try:
        b"\0\0\0\0".decode(found)
    except UnicodeError:
        pass
    except LookupError:  # one that makes bytes of bytes, such as zip
        return ""
    return "" if found in NOT_OF_PAGES else AS_BROWSERS_DO.get(found, found)


def kind_of(body: bytes, asked: Mapping[str, Any]) -> str:
    """Return 'html', 'text' or 'data', whatever a server calls it."""
    said = _guess_kind(body, asked["type"])
    wide = body.startswith(UTF16) or _codec(asked["charset"]).startswith(("utf-16", "utf-32"))
    return "data" if b"\0" in body[:4096] and not wide else said


def _guess_kind(body: bytes, type: str) -> str:
    if type in SNIFFED:
        start = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
            return "html"
        return "text" if not type or body.startswith(UTF16) or _is_utf8(body) else "data"
    if type in HTML:
        return "html"
    return "text" if type.startswith("text/") or type in TEXTS or type.endswith(("+json", "+xml")) else "data"


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# ---------------------------------------------------------------- pages


def read_text(body: bytes, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the main content of a page as Markdown or plain text; other text stays as it is."""
    kind = kind_of(body, asked)
    if kind == "data":
        is_named = asked["type"] and _guess_kind(body, asked["type"]) == "data"
        raise Unreadable(
            f"it is {asked['type'] if is_named else 'data'}, which is not text: fetch it with format='raw'"
        )
    text = decode(body, asked["charset"])
    if kind == "text":
        return {"title": "", "content": text}
    tree = _tree(text)
    if tree is None:
        return {"title": "", "content": ""}
    title, everything = _title(tree), _all_text(tree)
    wants_links = asked["links"] and asked["format"] == "markdown"
    links = {url: anchor.get("rel") for url, anchor in _links(tree, asked["url"])} if wants_links else {}
    content = _main_content(tree, asked) or everything
    return {"title": title, "content": content + _list_left_out(content, links)}


def _list_left_out(content: str, links: Mapping[str, str | None]) -> str:
    """Return the lines that say which of a page's *links* are not in its main content."""
    kept = {urldefrag(url).url for url in LINK.findall(content)}
    others = [url for url in links if url not in kept]
    following = [f"next: {url}" for url in others if "next" in (links[url] or "").lower().split()][:1]
    more = len(others) - len(following)
    count = [f"links of the page that are not in this text: {more:,} (web.links lists them)"] if more else []
    return "".join(f"\n\n{line}" for line in (*following, *count))


def _main_content(tree: Any, asked: Mapping[str, Any]) -> str:
    from trafilatura import extract, html2txt  # noqa: PLC0415 - half a second that links and JSON need not wait for
    from trafilatura.settings import use_config  # noqa: PLC0415 - as above

    whole, config = html2txt(tree), use_config()
    if len(whole) < SHORT_PAGE:
        config["DEFAULT"]["MIN_EXTRACTED_SIZE"] = "1"  # else it treats little content as none, and flattens the page
    content = extract(
        tree,
        asked["url"],
        output_format="markdown" if asked["format"] == "markdown" else "txt",
        include_links=asked["links"],
        include_comments=False,
        favor_recall=True,
        config=config,
    )
    return content or whole


def _all_text(tree: Any) -> str:
    """Return the words of a page that is too short or too odd to have a main content."""
    lines = (_line(text) for text in tree.xpath("//text()[not(ancestor::script or ancestor::style or ancestor::head)]"))
    return "\n".join(filter(None, lines))


def read_raw(body: bytes, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return text as it came; nothing of what is not text, which the caller has."""
    kind = kind_of(body, asked)
    return {"title": "", "content": None if kind == "data" else decode(body, asked["charset"])}


def read_json(body: bytes, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of a JSON document."""
    try:
        text = decode(body, asked["charset"] or "utf-8")
        return {"title": "", "content": json.loads(text, parse_constant=_no_constant)}
    except RecursionError:
        raise Unreadable("its JSON is nested too deeply") from None
    except ValueError as error:
        said = f" (it is {asked['type']})" if asked["type"] else ""
        raise Unreadable(f"it is not JSON{said}: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def read_links(body: bytes, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pages that a page links to, each once, with the first text that is not empty."""
    tree = _page(body, asked)
    links: dict[str, str] = {}
    for url, anchor in _links(tree, asked["url"]):
        if asked["contains"] in url and (url in links or len(links) < asked["limit"]):
            links[url] = links.get(url) or _line(anchor.text_content() or anchor.get("title") or "")[:200]
    return {"title": _title(tree), "content": [{"url": url, "text": text} for url, text in links.items()]}


def _links(tree: Any, address: str) -> Iterator[tuple[str, Any]]:
    """Yield where each link of the page at *address* leads, and its element."""
    base = _join(address, "".join(tree.xpath("//base/@href")[:1])) or address
    for anchor in tree.iter("a", "area"):
        url = urldefrag(_join(base, anchor.get("href") or "")).url
        if url.startswith(("http://", "https://")):
            yield url, anchor


def _join(base: str, href: str) -> str:
    """Return where *href* leads, or nothing."""
    try:
        return urljoin(base, href.strip()) if href else ""
    except ValueError:
        return ""


def read_tables(body: bytes, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a page that have a row below their heading."""
    tree = _page(body, asked)
    cells = 0
    tables: list[dict[str, Any]] = []
    for table in tree.iter("table"):
        rows: list[list[str]] = []
        for row in _rows(table):
            rows.append(row)
            cells += len(row)
            if cells > MAX_CELLS:
                raise Unreadable(f"its tables have more than {MAX_CELLS:,} cells: fetch it with format='raw'")
        rows = [row for row in rows if any(row)]
        if len(rows) > 1:
            columns = _columns(rows[0], max(map(len, rows)))
            records = [dict(zip(columns, [*row, *[""] * (len(columns) - len(row))], strict=True)) for row in rows[1:]]
            tables.append({"caption": _line(table.findtext("caption") or ""), "columns": columns, "rows": records})
    return {"title": _title(tree), "content": tables}


def _rows(table: Any) -> Iterator[list[str]]:
    """Yield the texts of each row; a cell that spans columns or rows is in each of its places."""
    group, below = None, dict[int, tuple[str, int]]()
    for row in table.xpath("./tr|./thead/tr|./tbody/tr|./tfoot/tr"):
        above, below = (below if row.getparent() is group else {}), {}  # no cell reaches into another group
        group = row.getparent()
        texts: list[str] = []
        for cell in row.iterchildren("td", "th"):
            _add_from_above(texts, above, below)
            text, height = _line(cell.text_content()), _span(cell, "rowspan", MAX_ROWS)
            for _ in range(_span(cell, "colspan", MAX_COLUMNS)):
                if height > 1:
                    below[len(texts)] = (text, height - 1)
                texts.append(text)
        while len(texts) <= max(above, default=-1):
            texts += [""] * (len(texts) not in above)
            _add_from_above(texts, above, below)
        yield texts


def _add_from_above(texts: list[str], above: Mapping[int, tuple[str, int]], below: dict[int, tuple[str, int]]) -> None:
    """Add the cells of earlier rows that come next in this one."""
    while (column := len(texts)) in above:
        text, more = above[column]
        if more > 1:
            below[column] = (text, more - 1)
        texts.append(text)


def _span(cell: Any, name: str, most: int) -> int:
    text = cell.get(name, "1").strip()
    return min(int(text), most) or 1 if text.isascii() and text.isdigit() and len(text) < 10 else 1


def _columns(heading: list[str], count: int) -> list[str]:
    """Return names of which none is there twice: the values of a column would be lost."""
    columns: dict[str, None] = {}
    for number in range(count):
        name = (heading[number] if number < len(heading) else "") or f"column {number + 1}"
        while name in columns:
            name = f"{name} {number + 1}"
        columns[name] = None
    return list(columns)


def _page(body: bytes, asked: Mapping[str, Any]) -> Any:
    if kind_of(body, asked) != "html":
        raise Unreadable(f"it is {asked['type'] or 'no HTML'}, and only HTML pages have links and tables")
    tree = _tree(decode(body, asked["charset"]))
    if tree is None:
        raise Unreadable("it is empty")
    return tree


def _tree(text: str) -> Any:
    from lxml import html  # noqa: PLC0415 - for HTML alone
    from lxml.etree import ErrorTypes, ParserError  # noqa: PLC0415 - as above

    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        tree = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except ParserError:
        tree = None
    if any(error.type == ErrorTypes.ERR_RESOURCE_LIMIT for error in cast("Any", parser).error_log):
        # The parser leaves out the rest, and what is there would look like the whole.
        raise Unreadable("its elements are nested too deeply: fetch it with format='raw'")
    return tree


def _title(tree: Any) -> str:
    return _line(tree.findtext(".//title") or "")[:300]


def _line(text: str) -> str:
    return BLANKS.sub(" ", text).strip()


# ---------------------------------------------------------------- robots


def read_robots(body: bytes, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether a site's robots.txt lets the agent fetch the address, and how long it wants it to wait."""
    from protego import Protego  # noqa: PLC0415 - only what a site allows is asked of it

    rules = cast("Any", Protego).parse(body.decode("utf-8-sig", "replace"))
    delay = rules.crawl_delay(asked["agent"]) or 0.0
    return {"content": {"allowed": bool(rules.can_fetch(asked["url"], asked["agent"])), "delay": float(delay)}}


# ---------------------------------------------------------------- the process


READINGS: Mapping[str, Callable[[bytes, Mapping[str, Any]], dict[str, Any]]] = {
    "markdown": read_text,
    "text": read_text,
    "raw": read_raw,
    "json": read_json,
    "links": read_links,
    "tables": read_tables,
    "robots": read_robots,
}


LIBRARIES = {"links": "lxml.html", "tables": "lxml.html", "robots": "protego"}


def answer(asked: Mapping[str, Any], body: bytes) -> bytes:
    """Return the reply to one question; what fails says why under ``error``."""
    try:
        return json.dumps(READINGS[asked["format"]](body, asked)).encode()
    except Unreadable as error:
        return json.dumps({"error": str(error)}).encode()
    except (MemoryError, RecursionError) as error:
        return json.dumps({"error": f"it is too large or too deep to be read ({type(error).__name__})"}).encode()
    except Exception as error:  # noqa: BLE001 - three parsers of other people, and pages of anybody
        return json.dumps({"error": f"it could not be read: {type(error).__name__}: {str(error)[:200]}"}).encode()


def prepare(asked: Mapping[str, Any], body: bytes) -> None:
    """Import what *asked* needs; on a busy machine that takes longer than to read the page."""
    is_page = asked["format"] in ("markdown", "text") and kind_of(body, asked) == "html"
    library = "trafilatura" if is_page else LIBRARIES.get(asked["format"])
    if library:
        importlib.import_module(library)


def serve(questions: BinaryIO, replies: BinaryIO) -> None:
    """Answer until there is no more question."""
    while len(head := questions.read(HEAD.size)) == HEAD.size:
        asked_size, body_size = HEAD.unpack(head)
        asked, body = json.loads(questions.read(asked_size)), questions.read(body_size)
        prepare(asked, body)
        replies.write(READY)
        replies.flush()
        reply = answer(asked, body)
        replies.write(HEAD.pack(len(reply), 0) + reply)
        replies.flush()


def main() -> None:
    """Keep the wire to oneself and the memory within bounds, then serve."""
    logging.disable()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - not everywhere

        limit = int(sys.argv[1]) << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
