"""Transport adapters of clew, one file per platform."""
