"""Calls, times and savings: rows, sums, queries, the report."""
