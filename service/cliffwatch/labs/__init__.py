"""Products on top of the service: only `server`, which puts their routes in, and `cli` know of them."""
