"""Models in this process, from `transformers_model.py` and `families/`."""
