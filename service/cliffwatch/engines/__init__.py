"""Engines: the processes that make the load. One module (or package) an engine, one row in `registry`."""
