"""Background runs: carried out once, or stopped with a report, and never replayed; their questions and their queue."""
