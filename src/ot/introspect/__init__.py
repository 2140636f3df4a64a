"""The ``ot`` pack: what a program can ask about OneTool, and the search for tools."""
