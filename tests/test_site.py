"""The documentation's frame: what the site's own builder does not notice."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def pages_in(nav: Any) -> Iterator[str]:
    """Yield every page that a navigation names, at any depth."""
    if isinstance(nav, str):
        yield nav
        return
    for entry in nav.values() if isinstance(nav, dict) else nav:
        yield from pages_in(entry)


def listed_pages() -> list[str]:
    """Return the pages that zensical.toml lists."""
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    return list(pages_in(project["nav"]))


def test_the_navigation_lists_every_page_once_and_no_other() -> None:
    written, listed = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}, listed_pages()
    unlisted, missing = sorted(written - set(listed)), sorted(set(listed) - written)
    assert not unlisted, "zensical.toml must list these pages"
    assert not missing, "zensical.toml lists pages that do not exist"
    assert len(set(listed)) == len(listed)


def test_decisions_are_numbered_without_gaps_and_titled_by_their_number() -> None:
    records = sorted(DOCS.glob("decisions/[0-9]*.md"))
    titles = [record.read_text(encoding="utf-8").split("\n", 1)[0] for record in records]
    numbers = range(1, len(records) + 1)
    assert records
    assert [f"{number:04d}" for number in numbers] == [record.name[:4] for record in records]
    assert [f"# {number}. " for number in numbers] == [re.sub(r"(?<=\. ).*", "", title) for title in titles]


def test_a_decision_says_why_what_and_at_what_price() -> None:
    for record in DOCS.glob("decisions/[0-9]*.md"):
        headings = re.findall(r"^## (.+)$", record.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequence"], record.name


def test_every_link_of_llms_txt_leads_to_a_page() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    links: list[str] = re.findall(r"\]\(([^)]+)\)", text)
    pages = {page.removesuffix("index.md").removesuffix(".md").rstrip("/") for page in listed_pages()}
    assert text.startswith("# OneTool\n\n> ")
    assert len(links) >= 20
    assert not [link for link in links if link.rstrip("/") not in pages or not link.endswith("/")]


@pytest.mark.parametrize("name", ["README.md", "AGENTS.md", "CONTRIBUTING.md", "skills/onetool/SKILL.md"])
def test_every_link_of_a_page_outside_the_site_leads_somewhere(name: str) -> None:
    page = ROOT / name
    links: list[str] = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not is_there(page, link)]


def is_there(page: Path, link: str) -> bool:
    """Return whether a file is there, and the heading in it that the link names."""
    path, _, anchor = link.partition("#")
    target = page.parent / path
    if not anchor:
        return target.exists()
    headings: list[str] = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
