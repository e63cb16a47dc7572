"""Part of a run: a process that runs one engine on one target of one machine, controlled by lines of JSON (`lines`)."""
