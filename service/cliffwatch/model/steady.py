"""The rule of SNIA's performance test specification for a steady drive, as far as workloads know it."""

#: So many rounds in a row are compared.
ROUNDS = 5
