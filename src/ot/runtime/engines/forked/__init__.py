"""Programs run by CPython in children of a warm interpreter: the exact engine and the trusted one."""
