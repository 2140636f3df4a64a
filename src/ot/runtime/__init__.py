"""One ``run()`` call: fences, snippets, the program, aliases, what a program can reach."""
