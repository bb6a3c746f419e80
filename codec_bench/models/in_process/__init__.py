"""Models in the process of codec-bench, from `transformers_model.py` and `families/`."""
