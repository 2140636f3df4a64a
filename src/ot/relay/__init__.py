"""The thin client of the shared server: what `serve --shared` runs, with nothing but the standard library."""
