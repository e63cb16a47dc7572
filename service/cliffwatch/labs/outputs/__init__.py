"""Read the output and logs of load generators as tables of windows: `cliffwatch analyze --from pgbench pgbench.err`.

Each format has a module with one function that turns lines into rows; `formats` lists the formats and makes the table.
"""
