"""Notes that tools keep for people: in a file of each, or wherever the processes of one server share them."""
