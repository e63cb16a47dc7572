"""What the kernel reports of this machine: drives, mounts, users of devices and files."""
