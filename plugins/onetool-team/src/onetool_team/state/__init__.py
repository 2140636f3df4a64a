"""What replicas of a server share: a small seam with memory or Redis behind it."""
