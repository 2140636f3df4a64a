"""Whether Redis keeps what the ledger wrote, as far as its settings tell."""

from __future__ import annotations

from ot.state.redis_connection import RedisConnection

NEEDED = "appendonly yes and appendfsync always"
UNREAD = f"whether Redis has {NEEDED} could not be read (CONFIG GET is refused)"
NO_FILE = f"Redis has no append-only file: entries are lost when it ends (needed: {NEEDED})"
LAST_SECOND = "appendfsync is {fsync}: entries of the last moments are lost with a loss of power (needed: always)"


async def why_not_durable(connection: RedisConnection) -> str:
    """Return why an entry may be lost although its call was sent; nothing when Redis keeps every one."""
    found = await connection.settings("appendonly", "appendfsync")
    if connection.trouble:
        return connection.trouble
    if len(found) < 2:
        return UNREAD
    if found["appendonly"] != "yes":
        return NO_FILE
    return "" if found["appendfsync"] == "always" else LAST_SECOND.format(fsync=found["appendfsync"])
