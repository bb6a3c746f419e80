"""The pitch of a voice over time: `ref` is the NumPy specification, `cpu` the numba implementation."""
