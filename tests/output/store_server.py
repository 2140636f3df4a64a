"""One of two servers that share a directory; run by test_result_faults.py.

Usage: store_server.py DIRECTORY COUNT. Waits for a line, stores COUNT results, waits for a line, reads them all.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from output.store_desk import file_store


def main() -> None:
    directory, count = Path(sys.argv[1]), int(sys.argv[2])
    store = file_store(directory, ttl=600)
    owner = f"server {os.getpid()}"
    sys.stdin.readline()
    texts = {store.put([text], tool="t", owner=owner).handle: text for text in (f"{owner} {n}" for n in range(count))}
    sys.stdout.write("stored\n")
    sys.stdout.flush()
    sys.stdin.readline()
    lost = sum(store.page(handle, owner=owner).lines != (text,) for handle, text in texts.items())
    sys.stdout.write(f"{len(texts)} {lost}\n")


if __name__ == "__main__":
    main()
