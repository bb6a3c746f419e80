"""The DNSMOS networks over windows of a signal: `ref` is the NumPy specification, `cpu` the numba implementation."""
