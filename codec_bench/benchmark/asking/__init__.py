"""The answering phase: send every question to the model and record every answer.

Which file to open
    `benchmarks.py`     one command: the model, run folders, and continued runs.
    `question_loop.py`  one benchmark: its questions, their records, and sounds that are too long.
    `question_sounds.py`  a hash of a question's sounds.
    `rounds.py`         questions of several rounds, with the model's own answers as turns.
    `variants.py`       draws of a question, their seeds, and the orders of its options.
    `extend.py`         continuing a record with more questions or draws.
    `sending.py`        concurrent requests to a model, and the response cache.
    `user_model_process.py`    a user's own model in a separate process.
    `batches.py`        the batch interface of a service (`--batch`); `batch_files.py` writes and reads its files.
    `canaries.py`       repeated questions that detect another model under the same name.
    `spending.py`       limits of cost and time. `estimate.py` predicts the cost.
"""
