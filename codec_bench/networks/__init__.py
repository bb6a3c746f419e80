"""Torch networks that give an item the same result in a batch of unequal lengths as alone.

They work on tensors and lengths. Files, names of models, memory budgets and metrics are handled elsewhere.

Which file to open
    A codec, scorer or encoder has a file of its own name. Shared are:
    `ragged.py`     where an item of a padded batch ends; `recurrent.py` and `mean_pooled_encoder.py` are layers and
                    means that stop there.
    `seanet.py`     convolutions of EnCodec and its descendants; `vocos.py` decoders over spectra; `weight_norm.py`
                    folds weights.
    `speech_encoder.py`  wav2vec 2.0, HuBERT and WavLM, of `speech_extractor.py` and `speech_transformer.py`; sizes in
                         `speech_config.py`.
    `kaldi.py`, `fbank.py`, `log_mel.py`  front ends; `residual_2d.py` residual blocks over frequency and time.
    `convolutions.py`  the convolutions of codecs on tensor cores.
    `precision.py`, `half_precision.py`  float16, bfloat16 and TensorFloat-32; `transfer.py` and `on_device.py` to a GPU and back;
                                         `batch_shapes.py` the few shapes
                    that batches have there.
"""
