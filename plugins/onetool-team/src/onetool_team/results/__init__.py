"""Stored results in an object store, which all replicas read."""
