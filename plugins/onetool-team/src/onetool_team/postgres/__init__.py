"""What people of a team's server keep in its PostgreSQL, beside the ledger: permissions, logins, approvals, notes."""
