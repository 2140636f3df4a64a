"""Where the servers come from that ``onetool add`` writes."""
