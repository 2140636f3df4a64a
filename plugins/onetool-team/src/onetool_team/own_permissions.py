"""OwnPermissions: the tools that one principal no longer wants to be asked about."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from onetool_team.state.shared_state import StateUnavailable
from ot.errors import ConfigError

logger = logging.getLogger(__name__)


class PermissionBook(Protocol):
    """Keeps patterns of tools by principal; every method raises StateUnavailable."""

    async def patterns(self, principal: str) -> tuple[str, ...]:
        """Return what *principal* has allowed for good."""
        ...

    async def add(self, principal: str, pattern: str) -> None:
        """Allow *pattern* to *principal* for good."""
        ...

    async def forget(self, principal: str, server: str = "") -> tuple[str, ...]:
        """Ask *principal* again about everything, or about the tools of *server*; return what is asked about."""
        ...


@dataclass(frozen=True, slots=True)
class OwnPermissions:
    """One principal's page of the book: nobody else's questions change by it, nor does the configuration."""

    book: PermissionBook
    principal: str

    async def allows(self, tool: str) -> bool:
        """Return whether *tool* is always allowed; while nobody can tell, it is not."""
        try:
            return any(fnmatchcase(tool, pattern) for pattern in await self.book.patterns(self.principal))
        except StateUnavailable as error:
            logger.warning("what is always allowed is not known, so the user is asked: %s", error)
            return False

    async def allow(self, tool: str) -> None:
        """Allow *tool* from now on.

        Raises:
            ConfigError: It cannot be kept.
        """
        try:
            await self.book.add(self.principal, tool)
        except StateUnavailable as error:
            raise ConfigError(f"it could not be kept: {error}") from None
