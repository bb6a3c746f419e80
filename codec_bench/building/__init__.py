"""Building: data sets that are made from other data by a recipe, with a check of every item and a count of what was dropped.

Each file here is one step of a build: `recipe` (what is asked for), `sources` (what it is made of), a maker of items
(`mixtures`, `spoken`), `record` (what is done already), `funnel` (what became of the items), `out` (the data set).
"""
