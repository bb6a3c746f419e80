"""ViSQOL's spectrograms and how alike their patches are:

`ref` is the NumPy specification, `cpu` the numba implementation.
"""
