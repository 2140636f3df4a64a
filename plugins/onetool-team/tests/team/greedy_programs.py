"""What one person may send who takes all that the quotas allow: written from the public pages alone."""

from __future__ import annotations

MAKE_FILES = """
line = "the quick brown fox jumps over the lazy dog, twice a day and never on sundays\\n"
for number in range(6):
    file.write(path=f"large/{number}.txt", content=line * 65_000)
for number in range(300):
    file.write(path=f"small/{number // 30}/{number}.txt", content=line * 20)
"""
"""Six files of 5 MB, and a tree of small ones."""

SEARCHES = """
import asyncio
await asyncio.gather(*[
    file.search(pattern="(a|b|c|d|e|f|g|h|i|j)+zq", path=".") for _ in range(32)
], return_exceptions=True)
"""
READS = """
import asyncio
await asyncio.gather(*[file.read(path=f"large/{n % 6}.txt", limit=2000) for n in range(32)], return_exceptions=True)
"""
TREES = """
import asyncio
trees = [file.tree(path="."), *[file.glob(pattern="**/*.txt") for _ in range(31)]]
await asyncio.gather(*trees, return_exceptions=True)
"""
WRITES = """
import asyncio
text = "x" * 1_000_000
await asyncio.gather(*[file.write(path=f"out/{n}.txt", content=text) for n in range(32)], return_exceptions=True)
for n in range(100):
    with open(f"out/own-{n % 8}.bin", "wb") as stream:
        stream.write(b"y" * 500_000)
"""
SQL = """
import asyncio
q = "select count(*) from range(200000000) a(x), range(10) b(y) where (x*y)%7=3"
await asyncio.gather(*[data.query(sql=q) for i in range(30)], return_exceptions=True)
"""
COMPUTES = """
total = 0
for number in range(100_000_000):
    total += number * number % 7
total
"""
LARGE_VALUES = """
rows = [{"number": n, "text": "abc" * 10, "more": [n, n + 1]} for n in range(40_000)]
rows
"""
MANY_CALLS = """
for number in range(400):
    file.exists(path=f"small/{number % 10}/{number}.txt") if hasattr(file, "exists") else file.list(path="small")
"""
SLEEPS_IN_BACKGROUND = """
done = []
for number in range(100):
    try:
        done.append(ot.background(command="import time\\ntime.sleep(3600)\\n1"))
    except Exception as error:
        break
len(done)
"""
CANCEL_BACKGROUND = """
for run in ot.run_state():
    if run["state"] in ("waiting", "running"):
        ot.cancel(id=run["id"])
"""

IN_TURN = (SEARCHES, SQL, READS, COMPUTES, WRITES, TREES, LARGE_VALUES, MANY_CALLS)
"""One for each run at a time; each sender goes through all of them, and begins at another one."""
