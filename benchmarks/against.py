"""Measures this checkout against an earlier commit, in turns, and fails when it has become slower.

python benchmarks/against.py 41b2e3a                prints the ratios and ends with 1 when one is above its bar
python benchmarks/against.py 41b2e3a --rounds 50    fewer rounds, to see that it works

The earlier commit gets a work tree and an environment of its own, made by its own .ci/setup and removed afterwards.
"""

from __future__ import annotations

import argparse
import compileall
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from compare import bench, ratios, table

ROOT = Path(__file__).parent.parent
BAR = 1.03
"""The upper end of a ratio's interval may not exceed this: judged by the lower end, small slowdowns add up unseen."""
WIDTH = 0.06
"""A wider interval decides nothing: measure more rounds, or on a quieter machine."""
FIGURES = ("spawn to", "run(1+1)", "run(one tool call)")


@contextmanager
def checkout(commit: str) -> Generator[Path]:
    """Yield a work tree of *commit* that is ready to run, and remove it."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "earlier"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(place), commit], check=True, cwd=ROOT)
        try:
            subprocess.run([place / ".ci" / "setup"], check=True, cwd=place)
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], check=True, cwd=ROOT)


def main() -> None:
    """Measure, print, and say by the exit code whether anything became slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=1500, help="warm calls on each side")
    parser.add_argument("--cold", type=int, default=40, help="starts on each side")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    with checkout(asked.commit) as earlier:
        for place in (ROOT, earlier):
            compileall.compile_dir(place / "src", quiet=1)
        before = f"{earlier}/.venv/bin/python {earlier}/benchmarks/our_server.py"
        now = f"{sys.executable} our_server.py"
        found = ratios(bench(before, "before", {"now": now}, asked.rounds, asked.cold), "now")
    print(json.dumps(found, indent=1) if asked.json else table(f"now to {asked.commit}", found, {}))
    judged = {
        name: figures["ci90"]
        for name, figures in found.items()
        if figures["ci90"] and any(part in name for part in FIGURES)
    }
    if vague := [name for name, (low, high) in judged.items() if high - low > WIDTH]:
        sys.exit(f"interval wider than {WIDTH}, measure more: {', '.join(vague)}")
    if slower := [name for name, (_, high) in judged.items() if high > BAR]:
        sys.exit(f"slower than {asked.commit}, upper end above {BAR}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
