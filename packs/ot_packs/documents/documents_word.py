"""Reads docx files as the HTML that mammoth makes of them."""

from __future__ import annotations

from typing import Any

import mammoth
from documents_archive import OfficePackage
from documents_html import MarkupTree


def open_document(package: OfficePackage, kind: str) -> MarkupTree:
    """Return the document; what it links to is not opened, and a style map that it brings is not used."""
    made = mammoth.convert_to_html(
        package.pack(),
        style_map="p[style-name='Title'] => h1:fresh",
        convert_image=mammoth.images.img_element(_no_image),
        include_embedded_style_map=False,
        external_file_access=False,
    )
    return MarkupTree(made.value, kind, package.about())


def _no_image(image: Any) -> dict[str, str]:
    return {"src": ""}
