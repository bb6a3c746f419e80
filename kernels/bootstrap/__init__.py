"""Sums over bootstrap resamples: which units are drawn is a function of the seed and a counter, so work can be split."""
