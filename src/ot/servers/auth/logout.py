"""A logout: revokes the tokens where they were issued, then forgets the record."""

from __future__ import annotations

from ot.servers.auth.account import ServerAccount


async def logout(account: ServerAccount) -> str:
    """Forget the login of *account*, and return why it could not be revoked as well, or nothing."""
    raise NotImplementedError
