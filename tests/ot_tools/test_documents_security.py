"""Documents and arguments made to do harm: each is refused in one error, or is read without doing any."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from document_makers import (
    OFFICE,
    archive,
    changed,
    docx,
    ods,
    packed_pdf,
    paragraph,
    part_of,
    pdf,
    pdf_of_streams,
    pdf_of_zeros,
    sample,
    xlsx,
)
from ot.build import IN_WORKERS
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import paths_in

pytestmark = pytest.mark.anyio

SECRET = "SECRET-7F3A"
LIMITS = {
    "max_bytes": 3_000_000,
    "unpacked_bytes": 8_000_000,
    "output_bytes": 100_000,
    "memory_bytes": 400_000_000,
    "seconds": 5.0,
}
MARKDOWN = "documents.to_markdown(path={path!r})"
TABLES = "documents.tables(path={path!r})"
HELLO = paragraph("hello")
LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
DOCTYPE = "declares a document type"
TOO_LARGE = "unpacks to more than 8,000,000 bytes (tools.documents.unpacked_bytes)"
TOO_MUCH_MEMORY = "needs more than 400,000,000 bytes of memory (tools.documents.memory_bytes)"
ENCRYPTED = "is encrypted: save it without a password"
UNKNOWN = "is not a document of a known kind"
BROKEN = "its archive is broken"
ROW = '<sheetData><row r="1"><c r="A1"><v>1</v></c></row>{}</sheetData>'
ONE_CELL = [{"name": "One", "page": 1, "columns": ["A"], "rows": [{"A": 1}], "more": False}]
PLAIN_TABLE = "documents.tables(path={path!r}, header=False)"


@dataclass(frozen=True)
class Case:
    """A file, a call, and either what the error says or what the value is."""

    file: str
    data: bytes | Callable[[Places], bytes]
    error: str = ""
    value: Any = None
    call: str = MARKDOWN


@dataclass(frozen=True)
class Places:
    """What a document would like to reach."""

    secret: Path
    url: str


def linked(places: Places, target: str, kind: str) -> bytes:
    """Return a Word document that has a relationship to something outside."""
    target = target.format(secret=places.secret, url=places.url)
    picture = (
        '<w:p><w:r><w:t>hello</w:t></w:r><w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/'
        'drawingml/2006/wordprocessingDrawing"><a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/'
        'main"><a:graphicData><pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture">'
        '<pic:blipFill><a:blip r:link="r9"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline>'
        "</w:drawing></w:r></w:p>"
    )
    relation = f'<Relationship Id="r9" Type="{OFFICE}/{kind}" Target="{target}" TargetMode="External"/>'
    return docx(picture, relations=relation)


def with_size(data: bytes, name: str, size: int) -> bytes:
    """Return an archive whose directory and header lie about the size of an entry."""
    made = bytearray(data)
    for signature, offset, name_at in ((b"PK\x03\x04", 22, 30), (b"PK\x01\x02", 24, 46)):
        place = made.find(signature)
        while made[place + name_at : place + name_at + len(name)] != bytearray(name.encode()):
            place = made.find(signature, place + 1)
        made[place + offset : place + offset + 4] = struct.pack("<I", size)
    return bytes(made)


def with_bits(data: bytes, offset: int, local_offset: int, value: int) -> bytes:
    """Return an archive with another 16-bit field in each header."""
    made = bytearray(data)
    for signature, at in ((b"PK\x03\x04", local_offset), (b"PK\x01\x02", offset)):
        place = made.find(signature)
        while place >= 0:
            made[place + at : place + at + 2] = struct.pack("<H", value)
            place = made.find(signature, place + 4)
    return bytes(made)


def overlapping(count: int) -> bytes:
    """Return an archive in which many entries share the same megabyte."""
    data = docx(HELLO, {"word/a.xml": f"<a>{' ' * 1_000_000}</a>"})
    end = data.rfind(b"PK\x05\x06")
    first = data.find(b"PK\x01\x02")
    entry = data[data.rfind(b"PK\x01\x02") : end]
    directory = data[first:end] + entry * count
    total = data[first:end].count(b"PK\x01\x02") + count
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, total, total, len(directory), first, 0)
    return data[:first] + directory + tail


def twice() -> bytes:
    """Return a document whose archive has two entries of the same name."""
    one, other = docx(paragraph("first")), docx(paragraph("final"))
    assert len(one) == len(other)
    place = one.find(b"PK\x01\x02")
    directory = one[place : one.rfind(b"PK\x05\x06")]
    total = directory.count(b"PK\x01\x02") * 2
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, total, total, len(directory) * 2, place, 0)
    return one[:place] + directory * 2 + tail


def compound_file(*names: str) -> bytes:
    """Return what begins like a file of old Office programs and holds these names."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + b"".join(name.encode("utf-16-le") for name in names)


def repeated_page() -> bytes:
    """Return a PDF file that shows one heavy page four thousand times."""
    heavy = packed_pdf(b"BT /F1 1 Tf 72 720 Td " + b"(abcdefghij) Tj 0 -1 Td " * 5_000 + b"ET")
    return heavy.replace(b"/Kids [4 0 R] /Count 1", b"/Kids [" + b"4 0 R " * 4_000 + b"] /Count 4000")


def nested_xml(depth: int) -> str:
    return "<w:sdt><w:sdtContent>" * depth + HELLO + "</w:sdtContent></w:sdt>" * depth


def slide_with(inner: str) -> bytes:
    """Return the presentation with something before the first slide's shapes."""
    text = part_of("slides.pptx", "ppt/slides/slide1.xml")
    return changed("slides.pptx", {"ppt/slides/slide1.xml": inner.format(text[text.index("<p:sld") :])})


CASES = {
    # ---------------------------------------------------------------- archives
    "a part that unpacks to sixty megabytes": Case(
        "a.docx", lambda _: docx(HELLO, {"word/styles.xml": f"<a>{' ' * 60_000_000}</a>"}), TOO_LARGE
    ),
    "many parts that unpack to too much together": Case(
        "a.docx", lambda _: docx(HELLO, {f"word/{n}.xml": f"<a>{' ' * 500_000}</a>" for n in range(20)}), TOO_LARGE
    ),
    "ten thousand entries and more": Case(
        "a.docx", lambda _: docx(HELLO, {f"word/{n}": "" for n in range(10_000)}), "entries, more than 10,000"
    ),
    "entries that overlap": Case("a.docx", overlapping(30), TOO_LARGE),
    "a header that makes a part smaller than it is": Case(
        "a.docx", with_size(docx(paragraph("x" * 5000)), "word/document.xml", 10), BROKEN
    ),
    "a header that makes a part larger than it is": Case(
        "a.docx", with_size(docx(HELLO), "word/document.xml", 4_000_000_000), value="hello"
    ),
    "two parts of the same name": Case("a.docx", twice(), value="first"),
    "a bomb inside of an embedded archive": Case(
        "a.docx", docx(HELLO, {"word/embeddings/a.zip": archive({"b": bytes(9_000_000)})}), value="hello"
    ),
    "a macro that unpacks to too much": Case(
        "a.xlsm", xlsx(ROW.format(""), {"xl/vbaProject.bin": bytes(9_000_000)}), value=ONE_CELL, call=PLAIN_TABLE
    ),
    "an entry with a path upwards": Case("a.docx", docx(HELLO, {"../../evil.xml": "<a/>"}), value="hello"),
    "an entry with an absolute path": Case("a.docx", docx(HELLO, {"/tmp/evil.xml": "<a/>"}), value="hello"),
    "an archive that is no document": Case(
        "a.docx", archive({"a": "b"}), "is an archive, but not a document of a known kind"
    ),
    "an archive with a password": Case("a.docx", with_bits(docx(HELLO), 8, 6, 1), ENCRYPTED),
    "an unknown compression": Case("a.docx", with_bits(docx(HELLO), 10, 8, 77), BROKEN),
    "an archive cut off": Case("a.docx", docx(HELLO)[:-30], BROKEN),
    "an archive of its end alone": Case("a.docx", b"PK\x05\x06" + b"\xff" * 18, BROKEN),
    # ---------------------------------------------------------------- XML
    "a billion laughs in a Word document": Case("a.docx", docx("&i;", head=f"{LAUGHS}]>"), DOCTYPE),
    "a quadratic blow-up": Case(
        "a.docx", docx("&a;" * 50_000, head=f"<!DOCTYPE x [<!ENTITY a '{'a' * 50_000}'>]>"), DOCTYPE
    ),
    "an entity that names a file": Case(
        "a.docx",
        lambda places: docx(paragraph("&x;"), head=f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{places.secret}">]>'),
        DOCTYPE,
    ),
    "a document type at an address": Case(
        "a.docx", lambda places: docx(HELLO, head=f'<!DOCTYPE x SYSTEM "{places.url}/x.dtd">'), DOCTYPE
    ),
    "a parameter entity in shared strings": Case(
        "a.xlsx",
        lambda places: xlsx(
            ROW.format(""),
            {"xl/sharedStrings.xml": f'<!DOCTYPE x [<!ENTITY % x SYSTEM "{places.url}/x"> %x;]><sst/>'},
        ),
        DOCTYPE,
    ),
    "a document type in UTF-16": Case(
        "a.docx", docx(HELLO, {"word/a.xml": "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>".encode("utf-16")}), DOCTYPE
    ),
    "a document type among relationships": Case(
        "a.docx", docx(HELLO, {"word/_rels/document.xml.rels": f"{LAUGHS}]><Relationships/>"}), DOCTYPE
    ),
    "a billion laughs in a slide": Case("a.pptx", slide_with(LAUGHS + "]>{}"), DOCTYPE),
    "a billion laughs in a workbook": Case("a.xlsx", xlsx(ROW.format(""), head=f"{LAUGHS}]>"), DOCTYPE),
    "a billion laughs in an open document": Case("a.ods", ods("", head=f"{LAUGHS}]>"), DOCTYPE),
    "a part that is not XML": Case("a.docx", docx(HELLO, {"word/a.xml": "<a><b></a>"}), "word/a.xml is malformed XML"),
    "elements nested ten thousand deep": Case("a.docx", docx(nested_xml(10_000)), "it is nested too deeply"),
    "groups of shapes nested too deeply": Case(
        "a.pptx", slide_with("<p:a xmlns:p='p'>" * 3000 + "{}" + "</p:a>" * 3000), "Excessive depth"
    ),
    # ---------------------------------------------------------------- workbooks
    "cells at both ends of a sheet": Case(
        "a.xlsx",
        xlsx(ROW.format('<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>')),
        TOO_MUCH_MEMORY,
        call=TABLES,
    ),
    "a dimension that lies": Case(
        "a.xlsx", xlsx('<dimension ref="A1:XFD1048576"/>' + ROW.format("")), value=ONE_CELL, call=PLAIN_TABLE
    ),
    "a cell beyond the last column": Case(
        "a.xlsx",
        xlsx(ROW.format('<row r="2"><c r="ZZZZZZZZ99999999999"><v>2</v></c></row>')),
        "cannot be read",
        call=TABLES,
    ),
    "a string that is not in the list": Case(
        "a.xlsx", xlsx(ROW.format('<row r="2"><c r="A2" t="s"><v>999999</v></c></row>')), "broken", call=TABLES
    ),
    "rows repeated without end": Case(
        "a.ods",
        ods(
            '<table:table-row table:number-rows-repeated="1048576"><table:table-cell office:value-type="float" '
            'office:value="1" table:number-columns-repeated="16384"/></table:table-row>'
        ),
        "it is a malformed workbook",
        call=TABLES,
    ),
    "a formula that calls out": Case(
        "a.xlsx",
        lambda places: xlsx(
            f'<sheetData><row r="1"><c r="A1"><f>WEBSERVICE("{places.url}")</f><v>1</v></c></row></sheetData>'
        ),
        value=ONE_CELL,
        call=PLAIN_TABLE,
    ),
    "a link to another workbook": Case(
        "a.xlsx",
        lambda places: xlsx(
            ROW.format(""),
            {
                "xl/externalLinks/_rels/externalLink1.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.'
                f'org/package/2006/relationships"><Relationship Id="r1" Type="{OFFICE}/externalLinkPath" '
                f'Target="{places.url}/b.xlsx" TargetMode="External"/></Relationships>'
            },
        ),
        value=ONE_CELL,
        call=PLAIN_TABLE,
    ),
    "a workbook with a password": Case("a.xlsx", compound_file("EncryptedPackage", "EncryptionInfo"), ENCRYPTED),
    "an open document with a password": Case("a.ods", ods("", manifest="<encryption-data/>"), ENCRYPTED),
    "an old workbook cut off": Case("a.xls", sample("sales.xls")[:-1500], "is of an old binary kind, or cut off"),
    "an old workbook of nothing but its name": Case("a.xls", compound_file("Workbook"), "cannot be read"),
    "an old Word document": Case("a.doc", compound_file("WordDocument"), "is of an old binary kind, or cut off"),
    # ---------------------------------------------------------------- links of Word documents
    "a picture at an address": Case("a.docx", lambda p: linked(p, "{url}/a.png", "image"), value="hello"),
    "a picture that is a file": Case("a.docx", lambda p: linked(p, "file://{secret}", "image"), value="hello"),
    "a picture by a path upwards": Case("a.docx", lambda p: linked(p, "../secret.txt", "image"), value="hello"),
    "a template at an address": Case("a.docx", lambda p: linked(p, "{url}/a.dotm", "attachedTemplate"), value="hello"),
    "an object at an address": Case("a.docx", lambda p: linked(p, "{url}/a.bin", "oleObject"), value="hello"),
    "a style map of its own": Case(
        "a.docx", docx(HELLO, {"mammoth/style-map": "p => pre.hidden", "mammoth/style.xml": "<a/>"}), value="hello"
    ),
    # ---------------------------------------------------------------- PDF
    "a page count that lies": Case("a.pdf", pdf(["hello"], count=2_000_000_000), value="<!-- page 1 -->\n\nhello"),
    "a tree of pages that holds itself": Case(
        "a.pdf", pdf(["hello"]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"), "page 1 is broken"
    ),
    "a stream that unpacks to a gigabyte": Case("a.pdf", pdf_of_zeros(1000), "bytes of memory"),
    "a heavy page shown four thousand times": Case(
        "a.pdf",
        repeated_page(),
        value=lambda found: len(found) == 1 and "took longer than" in found[0]["error"],
        call='documents.search(text="absent", paths=[{path!r}])',
    ),
    "more text than an answer holds": Case(
        "a.pdf",
        packed_pdf(b"BT /F1 1 Tf 72 720 Td " + (b"(" + b"abcdefghij" * 100 + b") Tj 0 -1 Td ") * 120 + b"ET"),
        "gives more than 100,000 bytes of text (tools.documents.output_bytes): ask for fewer pages",
    ),
    "a script that runs on opening": Case(
        "a.pdf",
        pdf(["hello"], catalog="/OpenAction << /S /JavaScript /JS (while(true){}) >>"),
        value="<!-- page 1 -->\n\nhello",
    ),
    "an action that starts a program": Case(
        "a.pdf",
        pdf(["hello"], catalog="/OpenAction << /S /Launch /F (/bin/sh) >>"),
        value="<!-- page 1 -->\n\nhello",
    ),
    "content in another file": Case(
        "a.pdf",
        lambda places: pdf_of_streams([(b"", f"/F ({places.secret})")]),
        value="<!-- page 1 -->",
    ),
    "a pdf with a password": Case(
        "a.pdf",
        pdf(
            ["hello"],
            trailer="/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 "
            f"/O <{'41' * 32}> /U <{'42' * 32}> >> /ID [<00><00>]",
        ),
        ENCRYPTED,
    ),
    "a pdf that is only its first line": Case("a.pdf", b"%PDF-1.7\n", "it is a malformed PDF file"),
    "a pdf cut off": Case("a.pdf", sample("report.pdf")[:700], "it is a malformed PDF file"),
    # ---------------------------------------------------------------- HTML
    "scripts and frames": Case(
        "a.html",
        lambda p: f'<p>hello</p><script src="{p.url}"></script><iframe src="file://{p.secret}"></iframe>'.encode(),
        value="hello",
    ),
    "images at addresses and in files": Case(
        "a.html", lambda p: f'<p>hello<img src="{p.url}"><img src="file://{p.secret}"></p>'.encode(), value="hello"
    ),
    "an entity of HTML that names a file": Case(
        "a.html",
        lambda p: f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{p.secret}">]><html><p>hello &x;</p></html>'.encode(),
        value="]>\n\nhello &x;",
    ),
    "an image of a megabyte in the text": Case(
        "a.html", b'<p>hello</p><img alt="" src="data:image/png;base64,' + b"A" * 2_000_000 + b'">', value="hello"
    ),
    "a cell that spans a billion columns": Case(
        "a.html",
        b"<table><tr><td colspan=1000000000>a<td rowspan=1000000000>b</table>",
        value=lambda tables: len(tables[0]["columns"]) <= 1_001,
        call=PLAIN_TABLE,
    ),
    "cells that span without end": Case(
        "a.html", b"<table><tr>" + b"<td colspan=1000>" * 5_000 + b"</table>", "more than 16,384 columns", call=TABLES
    ),
    "tags nested without end": Case("a.html", b"<div>" * 5_000 + b"hello", "it is nested too deeply"),
    # ---------------------------------------------------------------- other files
    "an image called pdf": Case("a.pdf", b"\x89PNG\r\n\x1a\n" + bytes(100), UNKNOWN),
    "a program called docx": Case("a.docx", b"\x7fELF" + bytes(100), UNKNOWN),
    "an empty file": Case("a.docx", b"", "is empty"),
    "a pdf called docx": Case("a.docx", pdf(["hello"]), value="<!-- page 1 -->\n\nhello"),
    "text called docx": Case("a.docx", b"hello", UNKNOWN),
    "a file that is too large": Case("a.html", b" " * 3_000_001, "more than 3,000,000 (tools.documents.max_bytes)"),
    # ---------------------------------------------------------------- paths and arguments
    "a path upwards": Case("a.pdf", b"", "outside", call='documents.to_markdown(path="../secret.html")'),
    "an absolute path": Case("a.pdf", b"", "outside", call="documents.to_markdown(path={secret!r})"),
    "a link to a file outside": Case("a.pdf", b"", "outside", call='documents.to_markdown(path="link.html")'),
    "a path upwards in a search": Case(
        "a.pdf",
        b"",
        value=lambda found: len(found) == 1 and "outside" in found[0]["error"],
        call='documents.search(text="SECRET", paths=["../secret.html"])',
    ),
    "a directory": Case("a.pdf", b"", "it is a directory", call='documents.info(path=".")'),
    "a pipe that nobody writes to": Case("a.pdf", b"", "neither a file nor", call='documents.info(path="pipe")'),
    "a path with a zero byte": Case("a.pdf", b"", "a NUL character", call='documents.info(path="a\\0.pdf")'),
    "a range of a billion pages": Case(
        "a.pdf",
        pdf(["hello"]),
        value="<!-- page 1 -->\n\nhello",
        call='documents.to_markdown(path={path!r}, pages="1-999999999")',
    ),
    "a pattern in place of a phrase": Case(
        "a.pdf",
        pdf(["a" * 200]),
        value=[],
        call='documents.search(text="(a+)+$", paths=[{path!r}])',
    ),
    "a phrase without end": Case(
        "a.pdf", b"", "at most 500 characters", call='documents.search(text="a" * 501, paths=["a.pdf"])'
    ),
    "more documents than one search takes": Case(
        "a.pdf", b"", "at most 200 paths", call='documents.search(text="a", paths=["a.pdf"] * 201)'
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    is_error: bool
    text: str


@dataclass(frozen=True)
class Outcomes:
    """What became of all cases, and what their documents reached."""

    by_case: dict[str, Outcome]
    connections: int
    files: set[str]
    alive: str


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def outcomes(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Outcomes]:
    """All cases, two at a time: one worker reads them all."""
    directory = tmp_path_factory.mktemp("hostile")
    paths = paths_in(directory, {"tools": {"documents": LIMITS}})
    secret = directory / "secret.html"
    secret.write_text(f"<p>{SECRET}</p>")
    work = directory / "work"
    (work / "link.html").symlink_to(secret)
    os.mkfifo(work / "pipe")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    places = Places(secret, f"http://127.0.0.1:{listener.getsockname()[1]}")
    found: dict[str, Outcome] = {}
    app = Workspace.alone(paths, engine=PortableEngine())
    turns = anyio.CapacityLimiter(2)

    async def play(number: int, name: str, case: Case) -> None:
        path = f"{number}/{case.file}"
        (work / path).parent.mkdir()
        (work / path).write_bytes(case.data(places) if callable(case.data) else case.data)
        call = case.call.format(path=path, secret=str(secret))
        async with turns:
            reply = await app.run(f"import json\njson.dumps({call})")
        found[name] = Outcome(reply.is_error, reply.texts[-1])

    with anyio.fail_after(300):
        async with anyio.create_task_group() as group:
            for number, (name, case) in enumerate(CASES.items()):
                group.start_soon(play, number, name, case)
        (work / "after.pdf").write_bytes(pdf(["still here"]))
        alive = (await app.run('documents.to_markdown(path="after.pdf")')).texts[-1]
    connections = 0
    try:
        listener.accept()
        connections += 1
    except BlockingIOError:
        pass
    listener.close()
    files = {str(file.relative_to(directory)) for file in directory.rglob("*evil*")}
    await app.aclose()
    yield Outcomes(found, connections, files, alive)


@pytest.mark.parametrize("name", CASES)
async def test_a_hostile_document_is_refused_or_harmless(outcomes: Outcomes, name: str) -> None:
    case, outcome = CASES[name], outcomes.by_case[name]
    assert SECRET not in outcome.text
    if case.error:
        assert outcome.is_error and case.error in outcome.text, outcome.text
        assert len(outcome.text) < 1000
        return
    assert not outcome.is_error, outcome.text
    value = json.loads(outcome.text)
    assert case.value(value) if callable(case.value) else value == case.value, value


async def test_no_document_opened_a_connection(outcomes: Outcomes) -> None:
    assert outcomes.connections == 0


async def test_no_document_wrote_a_file(outcomes: Outcomes) -> None:
    assert outcomes.files == set()


async def test_the_worker_reads_on_after_all_of_them(outcomes: Outcomes) -> None:
    assert "still here" in outcomes.alive


DOORS = {
    "reading another file": "open('/etc/passwd')",
    "writing a file of its own": "open(documents_reader.__file__, 'r+')",
    "a connection": "socket.socket().connect(('127.0.0.1', 1))",
    "a program": "subprocess.run(['true'])",
    "a shell": "os.system('true')",
    "a second process": "os.fork()",
    "removing a file": "os.remove('/tmp/evil')",
}


@pytest.mark.parametrize("code", DOORS.values(), ids=DOORS)
def test_the_process_that_reads_a_document_is_refused(code: str) -> None:
    program = (
        "import os, socket, subprocess, sys; sys.path.insert(0, sys.argv[1]); import documents_reader\n"
        f"documents_reader._close_doors()\ntry:\n    {code}\nexcept PermissionError as error:\n    print(error)"
    )
    pack = IN_WORKERS / "documents"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, pack], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("a document must not")
