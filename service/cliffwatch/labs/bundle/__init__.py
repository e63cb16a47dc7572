"""A run in one file, `RUN.tar.zst`, to be opened by another service: docs/bundle.md.

manifest   which files a bundle may hold, and what it says of them
archive    the plain tar inside, written and read as a stream
pack       a finished run's journal as a bundle
unpack     an untrusted bundle as a journal, or nothing
imports    a bundle as a run of this service
routes     the upload of a bundle
"""
