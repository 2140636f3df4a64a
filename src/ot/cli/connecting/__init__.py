"""What ``onetool connect`` and ``disconnect`` plan, show and count."""
