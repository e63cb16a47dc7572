"""A run in one file, `RUN.tar.zst`, to be opened by another service: docs/bundle.md.

manifest   files that a bundle may hold, with their sizes and checksums
archive    the plain tar inside, written and read as a stream
pack       make a bundle of a finished run's journal
unpack     make a journal of an untrusted bundle, whole or not at all
imports    import a bundle as a run of this service
routes     the upload of a bundle
"""
