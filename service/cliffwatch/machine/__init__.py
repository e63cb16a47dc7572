"""What the kernel says of this machine: drives, mounts, who uses what."""
