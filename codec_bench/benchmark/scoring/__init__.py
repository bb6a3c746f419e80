"""Scoring: metrics of recorded answers, and published ways to combine their values."""
