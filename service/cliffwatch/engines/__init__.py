"""Engines: the processes that make the load. Each is one module (or package) here, and one row in `registry`."""
