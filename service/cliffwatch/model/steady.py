"""Steady-state rule of SNIA's performance test specification: its number of rounds, for checks of workloads."""

#: Number of rounds in a row that are compared.
ROUNDS = 5
