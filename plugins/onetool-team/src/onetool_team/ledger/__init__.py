"""The ledger that the replicas and workers of a team's server share, in PostgreSQL"""
