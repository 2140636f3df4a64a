"""What runs inside the jail of the exact engine: standard library only, beside ``ot_sdk``."""
