"""Guarded processes, and the pools that lease them, end idle ones and wait before restarting one that died."""
