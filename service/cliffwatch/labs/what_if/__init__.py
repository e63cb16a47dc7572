"""What if: many simulations of one drive, with bands as a result rather than a number.

parameters.py    what can be varied, and how its values are written
profile.py       the drive and the workload that are asked about
plan.py          which simulations answer the question, and how long they take
simulator.py     running them, as many at a time as there are cores
answer.py        bands over seeds and over unpublished parameters
field_report.py  a published soak beside what the model makes of it
text.py          the answer in a terminal
page.py          the answer as a page of its own
"""
