"""What goes into the store and comes out of it, as frozen dataclasses."""
