"""STOI and ESTOI of a pair of signals: `ref` is the NumPy specification, `cpu` the numba implementation."""
