"""What wordings of a prompt and the order of options do to scores, as it is shown: `rows.py` makes the rows and
sentences, and the template and style beside it make the section of the page."""
