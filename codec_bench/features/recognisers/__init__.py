"""Speech recognisers, one adapter a file.

Which file to open
    `names.py`      recognisers by name: those of a metric or model, their languages and protocols.
    `pieces.py`     recognisers that cut long signals; `speech_windows.py` named rules for windows of 30 s.
    `whisper.py`    Whisper; its network is `whisper_ct2.py` or `whisper_torch.py` (interface: `whisper_network.py`),
    its
                    folder `whisper_checkpoint.py`. `cublas.py` loads a library that CTranslate2 needs.
    `transformers_asr.py`  a table of recognisers that run through their own processors: add a row for a new one.
    `funasr.py`     shared by `paraformer.py` and `sensevoice.py`; `transformers_checkpoint.py` reads the others'
    folders.
    Every other file is one recogniser or one family.
"""
