"""Edit distance with its path: how many items of two sequences agree, differ, are missing or are added."""
