"""An overview of a directory: what is in it, as deep as asked, with the sizes of all that lies below."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from ot.files.path_guard import PathGuard
from ot_tools._ignore_rules import IgnoreRules
from ot_tools._tree_walk import FoundEntry, Walk, WalkDeadline

MAX_SHOWN = 5000


@dataclass
class TreeNode:
    """A file, or a directory with the size and number of all files below it."""

    name: str
    type: str
    size: int = 0
    files: int = 0
    entries: list[TreeNode] | None = None
    """What a directory holds; None where the overview ends."""


@dataclass
class Overview:
    """What to look at, and how deep."""

    depth: int
    hidden: bool
    deadline: WalkDeadline
    _shown: int = field(default=0, init=False)

    def of(self, guard: PathGuard, path: str, rules: IgnoreRules | None) -> TreeNode:
        """Return the directory *path* with what it holds.

        Raises:
            ValueError: That are too many entries to show.
        """
        top = TreeNode(path, "directory", entries=[])
        around: dict[str, tuple[TreeNode, ...]] = {"" if path in (".", "./") else path.rstrip("/"): (top,)}
        walk = Walk[bool](lambda _, name: True if self.hidden or not name.startswith(".") else None, self.deadline)
        with guard.open_directory(path) as directory:
            for found, _ in walk.below(directory, path, state=True, rules=rules):
                parents = around[found.path.rpartition("/")[0]]
                node = self._add(found, parents)
                if found.entry.type == "directory":
                    around[found.path] = (*parents, node)
        return top

    def _add(self, found: FoundEntry, parents: tuple[TreeNode, ...]) -> TreeNode:
        level = len(parents)
        node = TreeNode(found.entry.name, found.entry.type)
        if found.entry.type == "directory":
            node.entries = [] if level < self.depth else None
        elif found.entry.type == "file":
            node.files = 1
            with suppress(OSError):  # it may be gone meanwhile
                node.size = found.directory.status(found.entry.name).size
        for parent in parents:
            parent.size += node.size
            parent.files += node.files
        if level <= self.depth and (shown := parents[-1].entries) is not None:
            shown.append(node)
            self._shown += 1
            if self._shown > MAX_SHOWN:
                raise ValueError(f"more than {MAX_SHOWN:,} entries: give a smaller depth=, or start deeper with path=")
        return node
