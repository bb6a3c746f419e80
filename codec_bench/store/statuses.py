"""What follows from the status of a score that has no value: whether it is a failure, its place in lists, and by that
its colour.

Beside the statuses of scores (`types.Status`), lists have `no_estimate` (the system gave nothing to score) and
`not_scored` (the record holds no score). Every status but `ok` stands in one group here.
"""

FAILURES = ("failed", "unparsed", "no_estimate", "not_scored")
"""Something went wrong.

Where failures count as wrong, the item gets the worst value; tables and pages show these in red.
"""
UNDEFINED = ("undefined",)
"""The metric has no value for the item. That is no failure, and worth a look."""
NOT_APPLICABLE = ("refused",)
"""The metric was not meant for the item, so that nothing is lacking."""
NO_FAILURE = (*UNDEFINED, *NOT_APPLICABLE)
WITHOUT_VALUE = (*FAILURES, *NO_FAILURE)
"""All of them, in the order in which lists have them."""
