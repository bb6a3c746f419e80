"""Wide-band PESQ of a pair of signals: `ref` is the NumPy specification, `delays` finds utterances and their delays, `cpu` is what runs."""
