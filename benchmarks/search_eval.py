"""Asks the search the checked-in queries, over the catalogues of real servers, and writes the page about it.

python benchmarks/search_eval.py            prints the tables of docs/explanation/search.md
python benchmarks/search_eval.py --write    puts them into the page
"""

from __future__ import annotations

import asyncio
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "search.md"
START, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


def main() -> None:
    """Print the tables, or put them into the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    search: dict[str, Any] = runpy.run_module("search.search_figures")
    text: str = search["figures"](asyncio.run(search["whole_registry"]()))
    if "--write" not in sys.argv[1:]:
        print(text)
        return
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{head}{START}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
