"""The pitch of a voice over time: `ref` NumPy specification, `cpu` numba."""
