"""Steady-state rule of SNIA's performance test specification: its number of rounds, for checks of workloads."""

#: So many rounds in a row are compared.
ROUNDS = 5
