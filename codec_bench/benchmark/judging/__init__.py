"""Judging: recorded answers are given to the judges, and their verdicts are written to the record."""
