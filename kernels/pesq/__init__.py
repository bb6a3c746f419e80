"""PESQ of a pair of signals, wide-band or narrow-band:

`ref` is the NumPy specification, `tables` has its numbers, `delays` finds utterances and their delays, `cpu` is what
runs.
"""
