"""The backend protocol, and the backends that need no other process."""
