"""The plugin's commands: ``chat`` and ``listen``."""
