"""Unpacks an Office document within bounds and packs anew only what readers need."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree
from xml.parsers import expat
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

from documents_kinds import BadDocument

MAX_ENTRIES = 10_000
CHUNK = 1 << 20
XML_NAMES = (".xml", ".rels", ".vml")
BINARY_PARTS = (".bin",)
FACTS = {
    "title": "title",
    "creator": "author",
    "initial-creator": "author",
    "created": "created",
    "creation-date": "created",
    "modified": "modified",
    "date": "modified",
}


class OfficePackage:
    """The parts of an Office document, all of them unpacked and checked."""

    def __init__(self, data: bytes, unpacked_bytes: int) -> None:
        """Unpack *data*.

        Raises:
            BadDocument: It is broken or encrypted, has too many entries, too many bytes, or a document type in XML.
        """
        self._left = self._most = unpacked_bytes
        try:
            with ZipFile(BytesIO(data)) as archive:
                self.parts = self._unpack(archive)
        except (BadZipFile, ZlibError, EOFError, NotImplementedError, ValueError, OSError) as error:
            raise BadDocument(f"cannot be read: its archive is broken ({str(error)[:100]})") from None

    def _unpack(self, archive: ZipFile) -> dict[str, bytes]:
        entries = archive.infolist()
        if len(entries) > MAX_ENTRIES:
            raise BadDocument(f"cannot be read: its archive has {len(entries):,} entries, more than {MAX_ENTRIES:,}")
        if any(entry.flag_bits & 1 for entry in entries) or self._encrypts_parts(archive):
            raise BadDocument("is encrypted: save it without a password")
        return {entry.filename: self._content(archive, entry) for entry in entries if not entry.is_dir()}

    def _encrypts_parts(self, archive: ZipFile) -> bool:
        """Return whether an OpenDocument file says that its parts are encrypted."""
        manifest = archive.NameToInfo.get("META-INF/manifest.xml")
        return manifest is not None and b"encryption-data" in self._content(archive, manifest)

    def _content(self, archive: ZipFile, entry: ZipInfo) -> bytes:
        """Return the content of a part that text comes from; images, macros and embedded files become empty."""
        name = entry.filename.lower()
        is_xml = name.endswith(XML_NAMES) or name == "mimetype"
        if not is_xml and not (name.endswith(BINARY_PARTS) and name.startswith("xl/") and "vba" not in name):
            return b""
        chunks: list[bytes] = []
        with archive.open(entry) as stream:
            while chunk := stream.read(CHUNK):  # the size in the header may be a lie
                self._left -= len(chunk)
                if self._left < 0:
                    raise BadDocument(
                        f"cannot be read: it unpacks to more than {self._most:,} bytes (tools.documents.unpacked_bytes)"
                    )
                chunks.append(chunk)
        content = b"".join(chunks)
        if is_xml and name != "mimetype":
            refuse_document_type(content, entry.filename)
        return content

    def pack(self) -> BytesIO:
        """Return the parts as an archive without compression, comments, overlaps or second entries of a name."""
        packed = BytesIO()
        with ZipFile(packed, "w", ZIP_STORED) as archive:
            for name, content in self.parts.items():
                archive.writestr(ZipInfo(name), content)
        packed.seek(0)
        return packed

    def about(self, part: str = "docProps/core.xml") -> dict[str, str]:
        """Return what the document says of itself."""
        try:
            root = ElementTree.fromstring(self.parts.get(part, b"<none/>"))
        except ElementTree.ParseError:
            return {}
        facts = ((FACTS.get(element.tag.rpartition("}")[2]), element.text or "") for element in root.iter())
        return {name: text for name, text in facts if name and text}


def refuse_document_type(content: bytes, name: str) -> None:
    """Refuse XML that declares a document type: Office writes none, and entities live there.

    Raises:
        BadDocument: It declares one, or is malformed.
    """

    def refuse(*_: object) -> None:
        raise BadDocument(f"cannot be read: {name[:100]} declares a document type, which no Office program writes")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise BadDocument(f"cannot be read: {name[:100]} is malformed XML ({error})") from None
