"""`cliffwatch drill`: the whole chain, proven on a small aging drive in minutes."""
