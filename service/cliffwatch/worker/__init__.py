"""The worker: the process that carries out one run and outlives the service."""
