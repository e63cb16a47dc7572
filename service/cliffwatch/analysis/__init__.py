"""What the windows mean: pure functions, no I/O."""
