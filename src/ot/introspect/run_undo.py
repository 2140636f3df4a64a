"""RunUndo: takes back what a run changed in files and notes, and tells what cannot be taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ot.files.path_guard import PathGuard
from ot.files.run_images import ImageStore
from ot.files.run_writes import current_writes
from ot.files.undo_plan import NotesToRestore, UndoPlan
from ot.registry.tool_registry import ToolRegistry

OWN = frozenset(("file", "memory"))
"""The bundled packs whose changes are kept; ``ot.undo`` changes by the same means."""
GAPS = "not every change of the run could be written down, so that it may have changed more than is listed here"
SWITCHED_OFF = "an undo must be undoable, and nothing is kept here: undo.run_bytes is 0"


class RunUndo:
    """Plans and carries out undos in one directory."""

    def __init__(
        self,
        images: ImageStore,
        guard: PathGuard,
        open_notes: Callable[[str], NotesToRestore],
        directory: str,
        elsewhere: frozenset[str] = frozenset(),
    ) -> None:
        """Restore what *images* has through *guard*, of runs in *directory*; *open_notes* finds a principal's notes.

        What packs keep *elsewhere* than on this machine, nothing takes back.
        """
        self._images = images
        self._guard = guard
        self._open_notes = open_notes
        self._directory = directory
        self._own = OWN - elsewhere

    def look(self, principal: str, run: str, *, restore: bool = False) -> dict[str, Any]:
        """Tell what an undo of *run* would restore and what it would leave alone; *restore* does it, too.

        Raises:
            LookupError: Nothing is kept of it, or it worked in another directory.
            ValueError: It is under way, kept by another release, or nothing can be restored here.
        """
        if restore and current_writes().images is None:
            raise ValueError(SWITCHED_OFF)
        with self._images.open_run(principal, run) as (kept, file):
            if (place := kept.about["directory"]) != self._directory:
                raise LookupError(f"run {run} worked in another directory: {place}")
            plan = UndoPlan(self._guard, self._open_notes(principal), file)
            plan.look(kept.paths.values())
            if restore:
                plan.restore()
            return {"run": run, **plan.as_json(), "note": GAPS if kept.has_gaps else ""}

    def list_others(self, effects: Iterable[Mapping[str, Any]], registry: ToolRegistry) -> list[str]:
        """Return the calls of a run of which an undo knows nothing, one of each tool, with what became of them."""
        left = [row for row in effects if row["state"] != "failed" and not self._is_kept(row["tool"], registry)]
        return [*dict.fromkeys(f"{row['tool']}: {row['state']}" for row in left)]

    def _is_kept(self, tool: str, registry: ToolRegistry) -> bool:
        pack, _, name = tool.partition(".")
        found = registry.packs.get(pack)
        if not (found and found.bundled) or found.broken:
            return False
        known = found.tools.get(name)
        # A bundled tool that needs their permission changes files by the pack file alone.
        needs = known.needs if known else ()
        return pack in self._own or tool == "ot.undo" or any(need.startswith("file.") for need in needs)
