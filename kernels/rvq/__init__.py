"""Search and lookup of residual quantisers.

`ref` is the specification in NumPy and float64. `cpu` uses a blocked matrix product, and `gpu` uses Triton with all
codebooks in one launch. `dispatch` chooses the implementation that runs, and reports which one ran.
"""
