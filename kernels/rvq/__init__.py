"""Search and lookup of residual quantisers: `ref` is the specification, `dispatch` chooses what runs and says it.

`ref` is NumPy in float64, `cpu` a blocked matrix product, `gpu` Triton with all codebooks in one launch.
"""
