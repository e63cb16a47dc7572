"""The worker: the process that executes one run and outlives the service."""
