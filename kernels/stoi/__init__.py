"""STOI and ESTOI of two signals: `ref` NumPy specification, `cpu` numba."""
