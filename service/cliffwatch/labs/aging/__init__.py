"""Aging drives: disks of this machine that collect garbage like flash, over files of the state directory.

    cliffwatch-drive mount   serves DIRECTORY/flash/drive through FUSE, as slow as the modelled drive
    a loop device            makes a disk of that file
    a file system            on the disk, mounted at DIRECTORY/files

`attach` puts the three on top of one another, `detach` takes them down in the opposite order, `clean` takes down what
processes left that were killed. What is there is read from the machine, never from what was written down: any part may
have been killed at any moment. `routes` tells Prometheus where the drives' own figures are.
"""
