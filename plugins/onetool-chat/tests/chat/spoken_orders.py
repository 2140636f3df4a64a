"""Speaks orders with a synthesiser, for tests that listen."""

from __future__ import annotations

import subprocess
from pathlib import Path

from onetool_chat.audio import RATE
from system_package import require_programs

ORDERS = ("list my tools", "turn on the light")


def speak(directory: Path) -> Path:
    """Return a WAV file with the two orders, and pauses around them."""
    require_programs("espeak-ng", "sox")
    pause = directory / "pause.wav"
    subprocess.run(
        ["sox", "-n", "-r", str(RATE), "-c", "1", "-b", "16", pause, "trim", "0", "1"], check=True, timeout=30
    )
    spoken = [pause]
    for number, order in enumerate(ORDERS):
        raw, even = directory / f"raw{number}.wav", directory / f"even{number}.wav"
        subprocess.run(["espeak-ng", "-v", "en-us+m3", "-s", "130", "-w", raw, order], check=True, timeout=30)
        subprocess.run(["sox", "-D", raw, "-r", str(RATE), "-c", "1", "-b", "16", even], check=True, timeout=30)
        spoken += [even, pause]
    whole = directory / "orders.wav"
    subprocess.run(["sox", "-D", *spoken, whole], check=True, timeout=30)
    return whole
