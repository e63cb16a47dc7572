"""Shared by the API and the pages: authentication, problems, paging, limits of bodies and connections."""
