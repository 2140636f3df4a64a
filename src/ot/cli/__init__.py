"""The command line: one file per command or small group of commands."""
