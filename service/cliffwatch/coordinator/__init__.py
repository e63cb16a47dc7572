"""The worker: the process that coordinates one run, outlives the service, and leaves the load to its part."""
