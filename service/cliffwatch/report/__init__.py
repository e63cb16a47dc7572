"""report.json and report.html, made from a journal at any time, with the same result each time."""
