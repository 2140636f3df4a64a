"""Makes small documents byte by byte, for what no program would write."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

SAMPLES = Path(__file__).parent / "ot_tools" / "documents_samples"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
CONTENT_TYPES = f'<Types xmlns="{TYPES}"><Default Extension="xml" ContentType="application/xml"/></Types>'


def sample(name: str) -> bytes:
    """Return a document that a real program made."""
    return (SAMPLES / name).read_bytes()


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a zip archive."""
    made = BytesIO()
    with ZipFile(made, "w", ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return made.getvalue()


def changed(name: str, parts: Mapping[str, str | bytes]) -> bytes:
    """Return a sample in which some parts are others, or are added."""
    with ZipFile(SAMPLES / name) as file:
        return archive({**{part: file.read(part) for part in file.namelist()}, **parts})


def part_of(name: str, part: str) -> str:
    """Return a part of a sample."""
    with ZipFile(SAMPLES / name) as file:
        return file.read(part).decode()


def docx(body: str = "", more: Mapping[str, str | bytes] | None = None, head: str = "", relations: str = "") -> bytes:
    """Return a Word document of this *body*; *head* stands before its root element."""
    space = f'xmlns:w="{WORD}" xmlns:r="{OFFICE}"'
    parts = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": _relations(f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'),
        "word/document.xml": f"{head}<w:document {space}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": _relations(relations),
    }
    return archive({**parts, **(more or {})})


def paragraph(text: str) -> str:
    """Return a paragraph of a Word document."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def _relations(inner: str) -> str:
    return f'<Relationships xmlns="{RELATIONS}">{inner}</Relationships>'


def xlsx(cells: str, more: Mapping[str, str | bytes] | None = None, head: str = "") -> bytes:
    """Return a workbook with one sheet, One, of these rows."""
    parts = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": _relations(f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'),
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relations(
            f'<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        ),
        "xl/worksheets/sheet1.xml": f'{head}<worksheet xmlns="{SHEET}">{cells}</worksheet>',
    }
    return archive({**parts, **(more or {})})


def ods(rows: str, head: str = "", manifest: str = "") -> bytes:
    """Return an OpenDocument workbook with one sheet, One."""
    names = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = f'xmlns:office="{names}:office:1.0" xmlns:table="{names}:table:1.0" xmlns:text="{names}:text:1.0"'
    content = (
        f"{head}<office:document-content {spaces}><office:body><office:spreadsheet>"
        f'<table:table table:name="One">{rows}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    made = BytesIO()
    with ZipFile(made, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("content.xml", content)
        file.writestr("META-INF/manifest.xml", f'<m xmlns="{names}:manifest:1.0">{manifest}</m>')
    return made.getvalue()


def pdf(pages: Iterable[str], catalog: str = "", count: int | None = None, trailer: str = "") -> bytes:
    """Return a PDF file with a line of text on each page."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() for text in pages]
    return pdf_of_streams([(stream, "") for stream in streams], catalog, count, trailer)


def packed_pdf(stream: bytes) -> bytes:
    """Return a PDF file of one page, whose content is compressed."""
    return pdf_of_streams([(zlib.compress(stream, 9), "/Filter /FlateDecode")])


def pdf_of_zeros(megabytes: int) -> bytes:
    """Return a PDF file of one page, whose content unpacks to so many zeros."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return pdf_of_streams([(b"\x78\xda" + block * megabytes + b"\x03\x00" + bytes(4), "/Filter /FlateDecode")])


def pdf_of_streams(
    streams: list[tuple[bytes, str]], catalog: str = "", count: int | None = None, trailer: str = ""
) -> bytes:
    """Return a PDF file with a page for each content and its filter."""
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(streams)))
    number = len(streams) if count is None else count
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode(),
        f"<< /Type /Pages /Kids [{kids}] /Count {number} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for place, (stream, filters) in enumerate(streams):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            + f"/Contents {5 + 2 * place} 0 R >>".encode()
        )
        objects.append(f"<< /Length {len(stream)} {filters} >>\nstream\n".encode() + stream + b"\nendstream")
    made = bytearray(b"%PDF-1.7\n")
    places: list[int] = []
    for place, inner in enumerate(objects, 1):
        places.append(len(made))
        made += f"{place} 0 obj\n".encode() + inner + b"\nendobj\n"
    start = len(made)
    made += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    made += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    made += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(made)
