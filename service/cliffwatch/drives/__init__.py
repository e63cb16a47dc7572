"""Drives: what is there, what may be written to, and what a drive says of itself."""
