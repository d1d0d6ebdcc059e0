"""The generic webhook: signed JSON in, signed JSON out."""
