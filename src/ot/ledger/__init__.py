"""The ledger: calls that may change something, recorded before they are sent, and the book of background runs."""
