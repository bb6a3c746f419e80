"""ViSQOL's spectrograms and similarities: `ref` specification, `cpu` numba."""
