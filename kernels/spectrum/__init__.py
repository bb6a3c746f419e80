"""Distances between magnitude and mel spectrograms: `ref` is the NumPy specification and also the implementation."""
