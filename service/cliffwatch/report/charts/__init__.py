"""Charts of the report: columns for the page's script, from windows and telemetry, and charts drawn as SVG."""
