"""`cliffwatch drill`: end-to-end test of the whole chain on a small aging drive, in minutes."""
