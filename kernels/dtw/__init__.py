"""Dynamic time warping of vectors: `ref` is the NumPy specification, `cpu` the numba implementation."""
