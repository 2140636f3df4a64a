"""What who operates a team's server can ask and do: who is there, what they run, what is kept of whom, and its end."""
