"""May this be written to? No, unless there is proof."""
