"""The `cliffwatch` command: a client of the API, plus what must work without the service."""
