"""Bitstream codecs that run in this process, one adapter a file.

Which file to open
    `bitstream.py`  FFmpeg's encoders and decoders, packets and bitrates. `sbc.py` has its own encoder. Every
                    other file is one codec.
"""
