"""Logins of a team's users to proxied servers: their browsers leave from a page of this server and come back to it."""
