"""What the tests of chat share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two spoken orders with pauses around them, in one WAV file."""
    from chat.spoken_orders import speak

    return speak(tmp_path_factory.mktemp("speech"))
