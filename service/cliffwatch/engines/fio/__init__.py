"""The fio engine: jobs that pass an allow-list, presets, and fio's cumulative output made into windows."""
