"""ViSQOL's spectrograms and similarities: `ref` is the NumPy specification, `cpu` numba."""
