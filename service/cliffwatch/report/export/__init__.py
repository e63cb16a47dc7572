"""The windows of a run as a table for other programs: CSV, Parquet, and the CSV that `cliffwatch analyze` reads.

    window_table   the columns of a run, and its rows one after the other
    formats        the formats, and the writer of each
    analyzable     the CSV that `cliffwatch analyze` reads

A run is read as a stream, twice or three times, so that 36 hours take no more memory than one hour. docs/export.md has
the columns.
"""
