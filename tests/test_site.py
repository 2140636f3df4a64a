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
MOST_WORDS = 1500
"""Of a page outside the reference, with its tables and code blocks."""


def pages_in(nav: Any) -> Iterator[str]:
    """Yield every page that a navigation names, at any depth."""
    if isinstance(nav, str):
        yield nav
        return
    for entry in nav.values() if isinstance(nav, dict) else nav:
        yield from pages_in(entry)


def navigation() -> list[dict[str, Any]]:
    """Return the navigation of zensical.toml."""
    return tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]


def listed_pages() -> list[str]:
    """Return the pages that zensical.toml lists."""
    return list(pages_in(navigation()))


def records() -> list[Path]:
    """Return the decisions, by their number."""
    return sorted(DOCS.glob("decisions/[0-9]*.md"))


def title_of(page: Path) -> str:
    """Return the text of a page's first heading."""
    return page.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def test_the_navigation_lists_every_page_but_decisions_once_and_no_other() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page not in records()}
    listed = listed_pages()
    unlisted, missing = sorted(pages - set(listed)), sorted(set(listed) - pages)
    assert not unlisted, "zensical.toml must list these pages"
    assert not missing, "zensical.toml lists pages that do not exist, or decisions, which decisions/index.md lists"
    assert len(set(listed)) == len(listed)


def test_the_index_of_decisions_lists_each_by_its_own_title() -> None:
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(\d+\. )\[(.+)\]\((.+)\)$", index, re.MULTILINE)
    assert [f"{number}{title} {file}" for number, title, file in listed] == [
        f"{title_of(record)} {record.name}" for record in records()
    ]


def test_the_index_of_how_tos_has_the_groups_of_the_navigation() -> None:
    (how_tos,) = (entry["How-to"] for entry in navigation() if "How-to" in entry)
    index, *groups = how_tos
    listed = re.findall(r"^(?:## (.+)|- \[.+?\]\((.+?)\).*)$", (DOCS / index).read_text(encoding="utf-8"), re.MULTILINE)
    named = [
        [title, *(page.removeprefix("how-to/") for page in pages_in(pages))]
        for each in groups
        for title, pages in each.items()
    ]
    assert [title or page for title, page in listed] == [name for group in named for name in group]


def test_the_home_page_shows_the_program_of_the_readme() -> None:
    programs = [
        re.findall(r"```python title=.*?```", page.read_text(encoding="utf-8"), re.DOTALL)
        for page in (DOCS / "index.md", ROOT / "README.md")
    ]
    assert programs[0] == programs[1]
    assert programs[0]


def test_a_page_outside_the_reference_is_short() -> None:
    pages = [page for page in DOCS.rglob("*.md") if not page.is_relative_to(DOCS / "reference")]
    words = {page.relative_to(DOCS).as_posix(): len(page.read_text(encoding="utf-8").split()) for page in pages}
    too_long = {page: count for page, count in words.items() if count > MOST_WORDS}
    assert pages
    assert not too_long, "shorten these pages, or move their tables to the reference"


def test_decisions_are_numbered_without_gaps_and_titled_by_their_number() -> None:
    numbers = range(1, len(records()) + 1)
    assert records()
    assert [f"{number:04d}" for number in numbers] == [record.name[:4] for record in records()]
    assert [f"{number}. " for number in numbers] == [re.sub(r"(?<=\. ).*", "", title_of(each)) for each in records()]


def test_a_decision_says_why_what_and_at_what_price() -> None:
    for record in records():
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
