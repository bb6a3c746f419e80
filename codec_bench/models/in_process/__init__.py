"""Models that run in the process of codec-bench:

`transformers_model.py` asks a checkpoint by the rules of its family in `families/`.
"""
