"""Cassettes: a run's calls in a file, from which it can be replayed without any tool."""
