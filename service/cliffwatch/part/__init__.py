"""A part of a run: one engine on one target of one machine, behind lines of JSON. `lines` is the interface."""
