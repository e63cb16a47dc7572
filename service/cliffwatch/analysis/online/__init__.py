"""Online detection, while a run goes on: one window at a time, in bounded memory."""
