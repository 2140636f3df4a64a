"""Logins at proxied servers: the record of one, where it is kept, how it is used and renewed, how it is made."""
