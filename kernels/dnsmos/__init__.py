"""The DNSMOS networks over windows: `ref` NumPy specification, `cpu` numba."""
