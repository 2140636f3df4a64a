"""Runs in the background: carried out once, or stopped with a report; never replayed."""
