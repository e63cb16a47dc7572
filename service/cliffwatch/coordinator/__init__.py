"""Worker process: coordinates one run and outlives the service. Its child processes, the parts, make the load."""
