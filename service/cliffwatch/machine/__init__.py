"""Drives, mounts, and users of devices and files of this machine, as the kernel reports them."""
