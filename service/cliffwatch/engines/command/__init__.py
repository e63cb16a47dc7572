"""The engine that runs a program which the machine's owner has allowed by name, and reads what it prints."""
