"""Logins at proxied servers: how one is made, stored, used and renewed."""
