"""Speech recognisers, one adapter a file.

Which file to open
    `pieces.py`     what recognisers share that hear long signals in pieces; `speech_windows.py` cuts them in 30 s, by
                    named rules.
    `whisper.py`    Whisper; its network is `whisper_ct2.py` or `whisper_torch.py`, as `whisper_network.py` says, its
                    folder `whisper_checkpoint.py`. `cublas.py` finds a library that CTranslate2 needs.
    `transformers_asr.py`      a table of recognisers that are asked through their own processors: a new one of that
                               kind is a row.
    `funasr.py`     what `paraformer.py` and `sensevoice.py` share; `transformers_checkpoint.py` what the others read of
                    a folder.
    Every other file is one recogniser, or one family of them.
"""
