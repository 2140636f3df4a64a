"""Writes the packages in docs/reference/source-map.md from their docstrings, and the layers in
docs/explanation/architecture.md from .importlinter; a test fails when either page is behind.
"""

from __future__ import annotations

import ast
import configparser
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = [ROOT / "src", ROOT / "packs", *sorted(ROOT.glob("plugins/*/src"))]
SOURCE_MAP = ROOT / "docs" / "reference" / "source-map.md"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN = "<!-- made by python docs/make_source_map.py -->\n"
END = "<!-- end -->\n"


class NoDocstring(Exception):
    """A package does not say what it holds."""


def update_source_map(page: str) -> str:
    """Return the source map's *page* with today's packages."""
    rows = "".join(f"| `{name}` | {contents} |\n" for name, contents in sorted(packages()))
    return _replace_between_marks(page, f"| package | contents |\n|---|---|\n{rows}")


def update_architecture(page: str) -> str:
    """Return the architecture's *page* with today's layers."""
    return _replace_between_marks(page, "```text\n" + "".join(f"{line}\n" for line in layers()) + "```\n")


def packages() -> Iterator[tuple[str, str]]:
    """Yield the name of every package, and of every module directly in ``ot``, with the first paragraph it says."""
    for source in SOURCES:
        for file in {*source.rglob("__init__.py"), *source.glob("ot/*.py")}:
            place = file.parent if file.name == "__init__.py" else file.with_suffix("")
            yield ".".join(place.relative_to(source).parts), _first_paragraph(file)


def layers() -> Iterator[str]:
    """Yield one line for each contract that orders distributions, or the parts of ``ot``."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter", encoding="utf-8")
    for name in config.sections():
        contract = config[name]
        if contract.get("type") == "layers" and contract.get("containers", "ot") == "ot":
            yield " > ".join(contract["layers"].split("\n")[1:])


def _first_paragraph(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    if not text:
        raise NoDocstring(f"give {file.relative_to(ROOT)} a docstring that says what it holds")
    return " ".join(text.split("\n\n", 1)[0].split()).replace("``", "`").replace("|", "\\|").removesuffix(".")


def _replace_between_marks(page: str, text: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


if __name__ == "__main__":
    for path, update in ((SOURCE_MAP, update_source_map), (ARCHITECTURE, update_architecture)):
        path.write_text(update(path.read_text(encoding="utf-8")), encoding="utf-8")
