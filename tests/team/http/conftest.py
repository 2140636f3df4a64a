"""What the tests of the edge share."""

from __future__ import annotations

from cli.conftest import onetool as onetool
