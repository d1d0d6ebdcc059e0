"""Discord, by its gateway and its HTTP API."""
