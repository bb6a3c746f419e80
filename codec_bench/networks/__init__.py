"""Torch networks that give an item the same result in a ragged batch as alone.

They work on tensors and lengths, not on files, budgets or metrics. Most import torch: import them inside functions.
Tensors have the names of the published checkpoints, with weight norm folded.

Which file to open
    Every other file is a codec, scorer or encoder. Shared are:
    `ragged.py`     the ends of items in a padded batch; `recurrent.py`, `mean_pooled_encoder.py` layers and means up to
    them.
    `seanet.py`     EnCodec's convolutions; `vocos.py` decoders over spectra; `weight_norm.py` folds weights.
    `speech_encoder.py`  wav2vec 2.0, HuBERT and WavLM, with `speech_extractor.py`, `speech_transformer.py`,
    `speech_config.py`.
    `kaldi.py`, `fbank.py`, `log_mel.py`  front ends; `residual_2d.py` residual blocks over frequency and time.
    `convolutions.py`  the convolutions of codecs on tensor cores.
    `precision.py`, `half_precision.py`  float16, bfloat16 and TensorFloat-32; `transfer.py`, `on_device.py` between
    host
                                         and GPU; `batch_shapes.py` the few shapes of batches there.
"""
