"""Measures OneTool against bare FastMCP, and ten thousand tools against ten, each pair interleaved in one run.

python benchmarks/compare.py            prints the tables of docs/reference/benchmarks.md
python benchmarks/compare.py --json     prints the figures
python benchmarks/compare.py --quick    fewer rounds, to see that it works
"""

from __future__ import annotations

import argparse
import compileall
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CALL = "demo.echo(text='x')"
PACKS, TOOLS_PER_PACK = 500, 20
BARS = {
    "spawn to first_run": 1.15,
    "run(1+1)": 1.3,
    "run(one tool call)": 1.5,
    "RSS": 1.4,
}
"""The most that each figure may be, as a ratio to the floor as shipped."""
MANY_BARS = {"spawn to first_run": 1.3, "run(1+1)": 1.1, "run(one tool call)": 1.1}
"""The same for ten thousand tools, as a ratio to ten."""


def bench(base: str, name: str, others: dict[str, str], rounds: int, cold: int) -> dict[str, Any]:
    """Return what the black-box client measures of *base* and *others*, in turns."""
    command = [sys.executable, str(HERE / "mcp_bench.py"), "--cmd", base, "--name", name, "--local-call", CALL]
    for other, its_command in others.items():
        command += ["--compare", its_command, "--compare-opt", f"name={other};call={CALL}"]
    command += ["--n", str(rounds), "--cold-n", str(cold), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE)
    return json.loads(done.stdout)["compare"]


def write_packs(directory: Path, packs: int, tools: int) -> Path:
    """Write a directory of generated packs, and the pack ``demo`` beside them."""
    directory.mkdir()
    (directory / "demo.py").write_text((HERE / "packs" / "demo.py").read_text())
    for number in range(packs):
        functions = "".join(
            f"\n\ndef tool_{tool}(*, query: str, limit: int = {tool}, exact: bool = False) -> list[str]:\n"
            f'    """Find things of kind {number}.{tool}.\n\n    Args:\n        query: What to look for.\n    """\n'
            f"    return [query] * limit\n"
            for tool in range(tools)
        )
        (directory / f"pack_{number}.py").write_text(
            f'"""Generated pack {number}."""\n\npack = "pack_{number}"\n{functions}'
        )
    return directory


def ratios(measured: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """Return ratio and interval of *name* to the base, by metric."""
    found = {
        metric: {"ratio": sides[name]["ratio_p50"], "ci90": sides[name]["ci90"], "p50_ms": sides[name]["p50_ms"]}
        for metric, sides in measured["metrics"].items()
        if name in sides and "ratio_p50" in sides[name]
    }
    base, rss = measured[f"rss {measured['base']}"]["main_mb"], measured[f"rss {name}"]["main_mb"]
    return found | {"RSS of the server alone": {"ratio": round(rss / base, 3), "ci90": None, "p50_ms": rss}}


def table(title: str, found: dict[str, dict[str, Any]], bars: dict[str, float]) -> str:
    """Return a Markdown table of ratios beside their bars."""
    lines = [f"### {title}", "", "| figure | ratio of medians | 90 % interval | bar |", "|---|---|---|---|"]
    for metric, figures in found.items():
        interval = f"{figures['ci90'][0]:.2f} to {figures['ci90'][1]:.2f}" if figures["ci90"] else ""
        bar = next((f"{value:g}" for key, value in bars.items() if key in metric), "")
        lines.append(f"| {metric} | {figures['ratio']:.2f} | {interval} | {bar} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    asked = parser.parse_args()
    rounds, cold = (30, 2) if asked.quick else (400, 12)
    # An installed package is compiled; so is what we measure, whatever this checkout's environment says.
    compileall.compile_dir(HERE.parent / "src", quiet=1)
    python = sys.executable
    with tempfile.TemporaryDirectory() as temporary:
        few = write_packs(Path(temporary) / "few", 0, 0)
        many = write_packs(Path(temporary) / "many", PACKS, TOOLS_PER_PACK)
        ours = f"{python} our_server.py"
        shipped = bench(f"{python} bare_server.py", "floor", {"onetool": ours}, rounds, cold)
        same_loop = bench(f"{python} bare_server_uvloop.py", "floor", {"onetool": ours}, rounds, cold)
        scale = bench(f"{ours} {few}", "few", {"many": f"{ours} {many}"}, rounds, cold)
    found = {
        "floor": ratios(shipped, "onetool"),
        "floor_same_loop": ratios(same_loop, "onetool"),
        "ten_thousand_tools": ratios(scale, "many"),
    }
    if asked.json:
        print(json.dumps(found, indent=1))
        return
    print(table("OneTool to bare FastMCP as shipped", found["floor"], BARS))
    print(table("OneTool to bare FastMCP under uvloop", found["floor_same_loop"], {}))
    print(table("10,000 tools in 500 packs to 10 tools", found["ten_thousand_tools"], MANY_BARS))


if __name__ == "__main__":
    main()
