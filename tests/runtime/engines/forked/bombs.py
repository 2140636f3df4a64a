"""Programs that never stop by themselves, and take what they can get."""

from __future__ import annotations

BOMBS = {
    "processes and threads": """
import os, threading
while True:
    try:
        os.fork()
    except OSError:
        pass
    try:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    except (RuntimeError, MemoryError):
        pass
""",
    "memory": """
held = []
while True:
    try:
        held.append(bytearray(1 << 20))
    except MemoryError:
        held.clear()
""",
    "an endless loop": "while True: pass",
}
"""Each is held and ended by its limits in the exact engine; never run one elsewhere."""
