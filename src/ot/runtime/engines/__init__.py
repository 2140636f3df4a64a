"""The engine protocol, and the choice of engine."""
