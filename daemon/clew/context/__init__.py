"""What the model sees, decided by pure functions: no input or output, no clock, no randomness."""
