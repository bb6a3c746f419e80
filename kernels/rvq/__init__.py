"""Search and lookup of residual quantisers.

`ref` is the specification in NumPy and float64, `cpu` a blocked matrix product, `gpu` Triton with all codebooks in one
launch. `dispatch` chooses the implementation, and reports which one ran.
"""
