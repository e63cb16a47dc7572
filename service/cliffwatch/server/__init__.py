"""The application put together: API, pages, and what runs beside the requests."""
