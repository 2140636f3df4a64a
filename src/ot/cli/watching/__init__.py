"""What ``onetool watch`` is made of: the servers that tell, what is known of their runs, and the screen."""
