"""The border that values cross: plain copies, JSON types, sizes."""
