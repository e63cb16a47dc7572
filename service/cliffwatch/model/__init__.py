"""Data models: workload, target, request, trigger, window, settings. No I/O."""
