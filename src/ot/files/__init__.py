"""Rules for paths that a program chooses; private files; opening without following links."""
