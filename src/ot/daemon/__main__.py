"""Starts the shared server; the relay runs this file with an isolated interpreter."""

from __future__ import annotations

import os
import sys

SOURCE = os.path.abspath(f"{__file__}/../../..")  # noqa: PTH100 - links stay as the relay named them
if SOURCE not in sys.path:  # a checkout that is not installed
    sys.path.insert(0, SOURCE)

from ot.daemon.main import main  # noqa: E402 - found only now

if __name__ == "__main__":
    main()
