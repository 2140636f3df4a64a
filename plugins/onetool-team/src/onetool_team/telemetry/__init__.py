"""What operators of a team's server see: request ids, traces, metrics and the audit log."""
