"""Colours by meaning, the same on every dashboard, and the words and numbers that stand for them."""

#: Phases: the number of each in a series of `phase_number`, and its colour.
PHASES = {
    "prepare": (1, "#8e8e8e"),
    "warm_up": (2, "light-yellow"),
    "baseline": (3, "green"),
    "soak": (4, "blue"),
    "cool_down": (5, "light-purple"),
}
#: Layers that an operation passes, none in a colour that warns.
LAYERS = {"client": "blue", "broker": "#a0785a", "queue": "#3a9d9d", "drive": "purple"}
#: Percentiles of the client in its hue, the higher the darker.
CLIENT_QUANTILES = {
    "p50": "super-light-blue",
    "p90": "light-blue",
    "p99": "blue",
    "p99.9": "semi-dark-blue",
    "p99.99": "dark-blue",
}
#: What a drive is asked: that of a cliff has the drive's own colour.
WRITES, READS = "purple", "light-purple"
#: Findings: the number that `finding_number` gives each (the worst has the highest), and its colour.
FINDINGS = {
    "none": (0, "green"),
    "recurring": (1, "orange"),
    "spikes": (2, "orange"),
    "drift": (3, "orange"),
    "step": (4, "orange"),
    "shortfall": (5, "orange"),
    "stall": (6, "red"),
    "cliff": (7, "red"),
}
#: Colours of the states of a run that is not over; `outcome_number` numbers them in this order, after the verdicts.
STATE_COLORS = {
    "queued": "text",
    "starting": "blue",
    "running": "blue",
    "stopping": "blue",
    "reporting": "blue",
    "interrupted": "red",
}
VERDICT_COLORS = {
    "pass": "green",
    "degraded": "orange",
    "invalid": "yellow",
    "failed": "red",
    "stopped": "text",
}

#: Text and colour of each value of a timeline.
UP_OR_DOWN = {0: ("down", "red"), 1: ("up", "green")}
LASTS_OR_NOT = {0: ("none", "transparent"), 1: ("lasts", "orange")}
IN_PHASE = {number: (name.replace("_", "-"), color) for name, (number, color) in PHASES.items()}
