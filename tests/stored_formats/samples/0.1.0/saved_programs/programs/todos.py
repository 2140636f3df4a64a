def count(path: str = ".") -> int:
    """Count."""
    return len(path)
