"""The reference pages of bundled packs are what the packs say of themselves."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import ot_tools
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.pack_needs import read_needs
from ot.registry.pep723 import script_metadata
from ot.server.run_description import BUNDLED_TOOLS

ROOT = Path(__file__).parents[1]
IN_WORKERS = Path(ot_tools.__file__).parent / "in_workers"


def test_each_page_and_the_description_of_run_show_each_pack_as_it_is() -> None:
    script: dict[str, Any] = runpy.run_path(str(ROOT / "docs/make_pack_pages.py"))
    pages: dict[str, str] = script["pages"]()
    behind = [name for name, text in pages.items() if _read(ROOT / f"docs/reference/packs/{name}.md") != text]
    assert behind == [], "run: python docs/make_pack_pages.py"
    assert BUNDLED_TOOLS.read_text(encoding="utf-8") == script["brief"](), "run: python docs/make_pack_pages.py"


def test_the_lock_of_each_pack_holds_what_its_file_declares() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    for extension in bundled_extensions(IN_WORKERS):
        lock = extension.files["requirements.lock"].decode()
        entries = (line.split(" ")[0].split(";")[0] for line in lock.splitlines() if "==" in line)
        locked = {canonicalize_name(name): version for name, _, version in (entry.partition("==") for entry in entries)}
        metadata = script_metadata(extension.files[extension.main].decode())
        assert metadata is not None and metadata.requires_python == ">=3.12"
        for requirement in map(Requirement, metadata.dependencies):
            version = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{extension.name}: {requirement}, locked {version}"
        assert "://" not in lock, f"{extension.name}: its lock names an index"
        assert lock.count("--hash=sha256:") >= len(locked)


def test_what_a_pack_needs_is_found_as_a_parse_of_its_file_finds_it() -> None:
    for extension in bundled_extensions(IN_WORKERS):
        for kind in ("secrets", "optional_secrets", "programs"):
            text = extension.files[extension.main].decode()
            assert read_needs(text)(kind) == extension.source.read_requirements(kind), extension.name


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.is_file() else ""
