"""The fio engine: jobs that pass an allow-list, presets, and conversion of fio's cumulative output into windows."""
