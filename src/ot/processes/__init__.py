"""Processes that calls lease: started under a guard, ended when idle, and tried again after a pause when they died."""
