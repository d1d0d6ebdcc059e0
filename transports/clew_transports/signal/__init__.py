"""Signal, by signal-cli's JSON-RPC."""
