"""The DNSMOS networks over windows: `ref` is the NumPy specification, `cpu` the numba implementation."""
