"""Results by the values of a column, as they are shown: `rows.py` makes the rows of the tables and `terminal.py` their texts, and
`section.py` with the template, script and style beside it makes the section of the page."""
