"""Background runs of a team: the workers that take them from the book, and carry them out"""
