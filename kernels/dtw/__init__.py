"""Dynamic time warping of vectors: `ref` NumPy specification, `cpu` numba."""
