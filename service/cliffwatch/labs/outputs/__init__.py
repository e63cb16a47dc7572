"""What load generators print and log, read as tables of windows: `cliffwatch analyze --from pgbench pgbench.err`.

Each format has a module with one function that makes rows of lines; `formats` names them and makes the table.
"""
