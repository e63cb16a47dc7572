"""Assemble the application: API, pages, and background tasks."""
