"""The `cliffwatch` command: a client of the API, plus commands that must work without the service."""
