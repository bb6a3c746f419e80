"""Results by column values: `rows.py`, and the section's template and script."""
