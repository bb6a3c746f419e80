"""Effects of wordings and option orders: `rows.py`, the section's template."""
