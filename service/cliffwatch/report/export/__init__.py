"""The windows of a run as a table for other programs: CSV, Parquet, and the CSV that `cliffwatch analyze` reads.

    table      the columns of a run, and its rows one after the other
    formats    the formats, and how each is written

A run is read as a stream, twice or three times, so that 36 hours take no more memory than one. docs/export.md has the
columns.
"""
