"""What a run is: specification, states and transitions, scheduling, launching, reconciling."""
