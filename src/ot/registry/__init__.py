"""Tools as data, and finding packs without importing them."""
