"""What models are told about packs, and where the files of topics are."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk
from ot.errors import ConfigError
