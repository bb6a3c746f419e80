"""Neural codecs: checkpoint, network and codes, one adapter a file.

Which file to open
    `base.py`       passes, weights and checks of codes that all share, and `latents.py` the same without codes;
                    `random_weights.py` networks without weights, for tests and benches.
    `encodec_stream.py`  EnCodec piece by piece. Every other file is one codec; its network is in
                         `codec_bench/networks/`.
"""
