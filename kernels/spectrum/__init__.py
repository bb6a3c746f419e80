"""Spectrograms and their distances: `ref` is also the implementation."""
