"""Answers beyond controls: `rows.py`, and the section's template."""
