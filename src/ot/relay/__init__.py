"""What ``serve --shared`` runs: it passes lines between a client and the shared server. Standard library only."""
