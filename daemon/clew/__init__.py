"""clew: a daemon between chat platforms and a language model, for threads that run for weeks."""

__version__ = "0.1.0"
