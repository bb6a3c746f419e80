"""Shards on the machines of a cluster: submitting them, following them, and merging what they give."""
