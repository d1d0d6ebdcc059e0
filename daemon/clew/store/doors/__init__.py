"""The verbs of the store by what they are about, one transaction each; `sqlite` has them all."""
