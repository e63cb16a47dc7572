"""What-if analysis: many simulations of one drive; the result is a band, not a single number.

parameters.py    parameters that can be varied, and how their values are written
profile.py       the drive and the workload to simulate
plan.py          the simulations that are needed, and how long they take
simulator.py     running the simulations, several at a time
answer.py        bands over seeds and over unpublished parameters
field_report.py  a published soak compared with the model's results
text.py          the answer as text in a terminal
page.py          the answer as an HTML page
"""
