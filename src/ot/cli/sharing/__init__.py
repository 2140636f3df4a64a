"""What the command line has to do with the shared server: asks it about itself, and has it answer commands."""
