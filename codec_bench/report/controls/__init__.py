"""What answers have beyond those to the text alone and other controls, as it is shown: `rows.py` makes the rows and
sentences, and the template beside it makes the section of the page."""
