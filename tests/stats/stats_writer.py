"""A process that notes calls: `python stats_writer.py FILE ROWS PAUSE_AFTER`; it says how many it has noted."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ot.config.models import Stats
from ot.execution.caller import Caller
from ot.execution.tool_executor import CallRecord
from ot.stats.recorder import Recorder, StatsPlace


def main() -> None:
    """Note so many calls, waiting after each part until it is written; with a fourth argument stay and wait."""
    file, rows, part = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    recorder = Recorder(StatsPlace(file, Stats()))
    for number in range(1, rows + 1):
        recorder.finished(CallRecord("t.f", Caller("me", client="writer"), f"{number}", 0.001, "", 7, "worker"))
        if number % part == 0:
            while not recorder.flush(30):
                pass
    sys.stdout.write("noted\n")
    sys.stdout.flush()
    if len(sys.argv) > 4:
        time.sleep(60)
    recorder.close()
    sys.stdout.write(f"{recorder.health()}\n")


if __name__ == "__main__":
    main()
