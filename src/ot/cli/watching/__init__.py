"""What ``onetool watch`` shows: the servers it listens to, their runs, and the screen."""
