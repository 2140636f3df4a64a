"""The shared server: one process for all clients of a user."""
