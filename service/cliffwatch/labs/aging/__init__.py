"""Aging drives: disks of this machine that do garbage collection like flash, backed by files of the state directory.

    cliffwatch-drive mount   serves DIRECTORY/flash/drive through FUSE, as slow as the modelled drive
    a loop device            makes a disk of that file
    a file system            on the disk, mounted at DIRECTORY/files

`attach` sets up the three layers, `detach` takes them down in reverse order, `clean` takes down what killed processes
left behind. The state is read from the machine, never from records: any process may have been killed at any moment.
`routes` is Prometheus service discovery of the drives' own metrics.
"""
