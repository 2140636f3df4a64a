"""The door to every tool: argument matching, policy, consent."""
