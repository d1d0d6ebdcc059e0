"""ntfy, by its HTTP API."""
