"""Results by the values of a column: `rows.py` makes the tables of the page and the terminal, and the template, script
and style beside it show those of the page."""
