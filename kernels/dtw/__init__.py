"""Dynamic time warping of two sequences of vectors:

`ref` is the NumPy specification, `cpu` the numba implementation.
"""
