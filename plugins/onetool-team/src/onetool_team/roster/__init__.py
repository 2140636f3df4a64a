"""The roster: who uses a team's server, since when, how much, and when last."""
