"""Programs run by Monty: what it would answer differently, and its refusals in OneTool's words."""
