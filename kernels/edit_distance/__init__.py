"""Edit distance with its path: equal, replaced, missing and added items of two sequences."""
