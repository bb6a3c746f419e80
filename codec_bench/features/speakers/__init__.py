"""Speaker encoders, one adapter a file.

Which file to open
    `speaker_encoder.py`  the base over this project's networks. Every other file is one encoder, or a family.
"""
