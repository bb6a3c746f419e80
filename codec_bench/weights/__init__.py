"""Checkpoints: which there are, where they lie on this machine, and how they are read without running what is in them."""

from codec_bench.weights.catalogue import Checkpoint, checkpoint, checkpoint_names
from codec_bench.weights.find import Found, find, lookup, noting
from codec_bench.weights.state import load_into, load_state

__all__ = [
    "Checkpoint",
    "Found",
    "checkpoint",
    "checkpoint_names",
    "find",
    "load_into",
    "load_state",
    "lookup",
    "noting",
]
