"""Edit distance with its path: equal, replaced, missing, added items."""
