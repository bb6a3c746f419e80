"""Speaker encoders, one adapter a file.

Which file to open
    `speaker_encoder.py`  what the encoders of this project's own networks share. Every other file is one encoder, or a
                          family.
"""
