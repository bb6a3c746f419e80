"""Asking: every question is sent to the model, and every answer is written to the record.

Which file to open
    `benchmarks.py`     one command: the model, the run folder of each benchmark, and a run that is continued with more
                        questions.
    `question_loop.py`  one benchmark: its questions one after the other, what is written of each, and sounds that are
                        too long.
    `question_sounds.py`  what an answered question's sounds hold, so that no answer to others is taken for one to it.
    `rounds.py`         a question of several rounds, in which the model's own answers are turns.
    `variants.py`       several draws of a question, their seeds, and the orders of its options.
    `extend.py`         the places of answers in a record that is continued with more questions or draws.
    `sending.py`        many requests to one model at once, the response cache, and whether the same model still
                        answers.
    `own_process.py`    a model of one's own in a process of its own.
    `batches.py`        the batch interface of a service (`--batch`); `batch_files.py` writes and reads its files.
    `canaries.py`       questions that are asked again, to see whether another model answers under the same name.
    `spending.py`       limits of cost and of time.
    `estimate.py`       what the questions will cost, before the first is asked.
"""
