"""Worker process, which coordinates one run and outlives the service. Its child, the part, makes the load."""
