"""What the API and the pages share: who asks, problems, paging, limits of bodies and connections."""
