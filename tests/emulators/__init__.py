"""Loopback servers that answer as the model providers do. They know nothing of clew."""
