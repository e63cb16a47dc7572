"""What things are: workload, target, request, trigger, window, settings. No I/O."""
