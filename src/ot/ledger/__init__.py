"""The effect ledger: what programs had done, had not done, and what nobody knows, kept over crashes."""
