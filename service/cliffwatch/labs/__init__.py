"""Products built on the rest, none of which the rest knows of."""
