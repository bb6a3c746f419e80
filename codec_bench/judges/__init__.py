"""Judges: rubrics, what a judge is asked by them (`rating`), and what its reply says (`replies`)."""
