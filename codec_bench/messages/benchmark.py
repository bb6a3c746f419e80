"""Codes of questions, answers and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.messages.errors import first_of


def _spent(spent_usd: float) -> str:
    return f": {spent_usd:.4g} USD are spent" if spent_usd else ""


def _unknown(missing: Sequence[str]) -> str:
    return f" (unknown: {', '.join(missing)})" if missing else ""


_SHOWN_LABELS = 12
_ANSWERS = {
    "option": ("option", "options"),
    "label": ("label", "labels"),
    "yes_no": ("yes or no", "answers of yes or no"),
}
"""Words of what an answer has none of, and several of."""


def _labels(labels: Sequence[str]) -> str:
    return f" of {first_of(labels, _SHOWN_LABELS)}" if labels else ""


def _no_such_answer(answer: str, kind: str = "option", labels: Sequence[str] = (), **older: str) -> str:
    subject = older.get("what") or f"{_ANSWERS.get(kind, (kind,))[0]}{_labels(labels)}"
    return f"there is no {subject} in {answer}"


def _several_answers(
    answer: str, kind: str = "option", labels: Sequence[str] = (), matches: Sequence[str] = (), **older: str
) -> str:
    if older:
        return f"there are several {older.get('what')}s ({older.get('found')}) in {answer}"
    return f"there are several {_ANSWERS.get(kind, (kind,))[-1]}{_labels(labels)} ({', '.join(matches)}) in {answer}"


SENTENCES = {
    "info": {
        "reference_outside_choices": lambda reference, choices=(): (
            f"the reference '{reference}' is none of the choices{(choices and f' {choices}') or ''}"
        ),
        # Of older records, as `reference_outside_choices`.
        "expected_outside_choices": "the reference '{answer}' is none of the choices",
        "program_fails_at_first": "the published program ends in an error at an empty answer at first",
        "no_choices": "the sample '{id}' has no choices",
        "no_expected": "the sample '{id}' has no reference",
        "no_fields": "the question has no {fields}",
        "baseline_without_sound": "the baseline has no sound for the judge to hear",
        "no_criterion": "the question has no criterion in '{column}'",
        "option_count": "the sample '{id}' has {options} options",
        "is_baseline": "the answer is the baseline's own",
        "baseline_without_answer": "the baseline has no answer to the same question",
        "no_text_in_column": "the question has no text in '{column}'",
        "no_expected_words": "the sample '{id}' has no reference, or one without words",
        "no_expected_text": "the sample '{id}' has no reference, or an empty one",
        "any_words_of_silence": "any number of words may be an answer to silence",
        "english_renderings_only": "renderings are known for en only, not for '{language}'",
        "empty_neither": "an empty answer neither declines nor complies",
        "english_rule_only": "the published rule is here for English, and this is '{language}'",
        "nothing_to_repeat": "no reference of the sample '{id}' has anything to repeat",
        "no_sections": "the sample '{id}' has no sections that end with '{end}'",
        "answer_not_sections": "the answer to '{id}' is no list of sections",
        "no_shared_time": "the answer to '{id}' shares no time with the song",
        "part_of_session": "the words of a part without an answer count as missing in its session",
        "session_without_reference": "the session of '{id}' has no reference",
        "session_without_words": "the session has no words",
        "part_not_number": "the part of '{id}' is {part!r}, no number",
        "emotion_not_among": "'{emotion}' is none of {emotions}",
        "expected_without_words": "the reference of '{id}' has no words",
        "question_without_repetition": "the question of '{id}' has nothing to repeat after its first sentence",
        "judge_asked_instead": "the published rule asks a judge about plain repetition too",
        "answers_not_published": (
            "the expected answers are not published; `codec-bench export RUN --format submission` writes the file that "
            "the authors score"
        ),
        "no_weights": "the sample '{id}' has no weights of {names}",
    },
    "warning": {
        # Of answers.
        "not_heard": "the model did not get {s:.1f} s of its audio",
        "answer_empty": "the answer is empty",
        "answer_endless": "the answer has no end: it ran into the limit of length, or repeats itself",
        "answer_copy": "the answer is a copy of the question",
        "answer_phonemes": "the answer is in phonemes",
        "answer_language": "the answer is in another language or script than was expected",
        "answer_truncated": "the answer ends inside of its reasoning",
        "answer_refusal": "the model declines to answer",
        # Flags of scores.
        "ignored_format": "the answer ignores the requested format",
        "tied_pair": "both sounds of a pair are equally likely to the model; such a pair counts as half",
        "doubled_choice": "the right choice stands more than once among the choices of the question",
        "no_such_label": "the expected answer is none of the labels of the question",
        "missing_parts": "parts of the session are missing, and their words count as errors of the others",
        "empty_answer_no_option": "an empty answer is like no option",
        "benchmark_excluded": "{benchmark} with {model} will be skipped: {cause}",
        "also_says": "a judge's reply that also says another verdict",
    },
    "error": {
        "reply_without_similarities": (
            "the judge's reply is not the similarities of {texts} texts, as embedding models give"
        ),
        "no_audio_answer": "the model gave no audio, and the benchmark needs it",
        "no_answer": "the model gave neither text nor audio",
        "in_round": "round {round} of {rounds}: {cause}",
        "no_response": "the model gave {type}; expected a Response",
        "ask_is_not_async": "the model's ask gave {kind} at once; expected `async def ask(self, request)`",
        "model_raised": "the model raised {type}: {message}",
        "model_raised_on_messages": (
            "the model raised {type}: {message}; it got messages; ModelInfo(reads='fields') asks for fields"
        ),
        "no_pair": "there is no pair of ratings in {reply}",
        "several_preferences": "there are several preferences in {reply}",
        "no_preference": "there is no preference in {reply}",
        "yes_and_no": "there is both yes and no in {reply}",
        "no_yes_or_no": "there is neither yes nor no in {reply}",
        "reasoning_ends_in": lambda last, yes, reply: (
            f"its reasoning ends in {last} and its verdict is {'yes' if yes else 'no'} in {reply}"
        ),
        "several_options": "there are several options in {reply}",
        "no_option": "there is no option in {reply}",
        "several_numbers": "there are several numbers in {answer}",
        "no_number": "there is no number in {answer}",
        "judge_reply_cut": "the judge's reply was cut at {characters:,} characters, at the limit of its length",
        "judge_without_text": "the judge gave no text",
        "response_field": "the model gave a Response whose {name} is {value}; expected {expected}",
        "judge_reply": "the judge's reply: {cause}",
        "no_sound_of_round": "there is no sound of round {round} for the judge to hear",
        "no_sound_to_judge": "there is no sound for the judge to hear",
        "verdicts_missing": "{given} of {asked} verdicts came",
        "judge_failed": "the judge: {cause}",
        "no_rating": "there is no rating in {reply}",
        "repeats_answer": "{cause} next to words of the answer, which do not count",
        "reasoning_differs": "its reasoning ends in {last:g} and its verdict is {value:g} in {reply}",
        "several_ratings": "there are several ratings in {reply}",
        "no_rating_field": "there is no field {fields} in {reply}",
        "several_pairs": "there are several pairs of ratings in {reply}",
        "not_among_options": "{letter} is none of the options {options} in {reply}",
        "replies_disagree": "{replies} replies do not agree",
        "official_reads_nothing": "the published rule reads nothing in {reply}",
        "rating_of_other_scale": "the rating is out of {below}, not of {high:g}, in {reply}",
        "rating_out_of_range": "{rating:g} is not between {low:g} and {high:g} in {reply}",
        "field_without_number": "the field '{key}' holds no number in {reply}",
        "judge_finds_no_option": "the judge finds no option: {reply}",
        "official_error": "{type} as in the source, at {reply}",
        "no_text": "the model gave no text",
        "not_read": "the answer was not read",
        "one_or_two_references": "the published rule takes one reference or two",
        "expected_has_words": "the expected answer has words, and this is measured where it has none",
        "instruction_counts": "the sample '{id}' has {instructions} instructions and {arguments} sets of arguments",
        "unknown_instruction": "there is no check of the instruction '{instruction}'",
        "instruction_arguments": "the arguments of the instruction of '{id}' cannot be used: {message}",
        "infinite_likelihood": "a log-likelihood is not finite",
        "no_likelihoods": "the answer holds no log-likelihoods of two sounds",
        "expected_count": "the sample '{id}' has {expected} expected answers; expected one",
        "neither_reference": "the transcript has the words of neither reference where they differ",
        "references_agree": "the references agree",
        "no_other_rendering": "the transcript has no words that the reference could have written otherwise",
        "no_sound_for_emotion": "there is no sound to detect emotion in",
        "length_unknown": "the length of the question or of the answer is not known",
        "ends_in_reasoning": "the answer ends inside of its reasoning: {answer}",
        "declines": "the model declines in {answer}",
        "no_such_answer": _no_such_answer,
        "several_answers": _several_answers,
        "no_labels": "the row has no labels to choose from",
        "no_sections_in_answer": "there are no sections with a start, an end and a label in {answer}",
        "sections_overlap": "a section does not begin after the one before it in {answer}",
        "section_ends_early": "the last section does not end after it began in {answer}",
        "nothing_said": "the answer is empty",
        "nothing_without_tags": "nothing is left without tags of {answer}",
        "no_json_field": "there is no JSON object with the field '{name}' in {answer}",
        "several_json_values": "there are several values of the field '{name}' in {answer}",
        "json_field_not_text": "the field '{name}' is neither text nor number in {answer}",
        "no_marker": "there is no '{marker}' in {answer}",
        "nothing_after_marker": "nothing follows '{marker}' in {answer}",
        "nothing_before_marker": "nothing stands before '{marker}' in {answer}",
        "no_key": "there is no '{key}' in {answer}",
        "answer_ends_in_reasoning": "the answer ends inside of its reasoning",
        "no_sound_to_transcribe": "there is no sound to transcribe",
        "metric_broke": "{metric} broke: {type}: {message}",
        "no_audio_to_score": "there is no audio to score",
        # Flags of verdicts on sound that is no answer.
        "spoken_answer_short": "a spoken answer of less than 0.3 s",
        "spoken_answer_silent": "a spoken answer that is silent",
        "spoken_answer_steady": "a spoken answer that is noise or a steady tone",
        "spoken_answer_copy": "a spoken answer that is a copy of the question",
        "batch_refused_alike": "all {requests:,} requests of the batch {batch} were refused alike: {message}",
        "answers_pending": "{count:,} {unit} in {batches} at the service ({names})",
        "batch_unknown": (
            "it is not known whether the service took a batch of {requests:,} requests: its list lacks it so far"
        ),
        "batch_not_uploaded": "the batch was not uploaded: {message}",
        "batch_refused": "the batch was not taken: {cause}",
        "questions_in_batches": "the questions of '{folder}' wait in {batches} at the service",
        "choice_changes_question": "holds another question under the id '{id}'",
        "choice_lacks_question": "does not hold the question '{id}'",
        "choice_cannot_grow": "'{folder}' cannot grow: the larger choice {cause}, which was answered there",
        "model_not_started": "the model '{model}' could not be started: {cause}",
        "answer_audio_not_written": "the answer's audio cannot be written to '{path}': {cause}",
        "question_audio_not_written": "the question's audio cannot be written to '{path}': {cause}",
        "sound_not_to_be_cut": (
            "its sound is {s:.1f} s long, '{model}' takes {limit_s:g} s, and the benchmark says not to cut it"
        ),
        "other_model_behind_name": "'{folder}' was started with another model behind the same name: {changes}",
        "spending_stopped": lambda cause, count, unit: (
            f"{cause}; {count:,} {unit}{'s were' if count != 1 else ' was'} not sent"
        ),
        "cost_limit_reached": lambda limit_usd, spent_usd=0.0: (
            f"the limit of {limit_usd:g} USD is reached{_spent(spent_usd)}"
        ),
        "hour_limit_reached": lambda limit_hours, spent_usd=0.0: (
            f"the limit of {limit_hours:g} hours is reached{_spent(spent_usd)}"
        ),
        "cost_unknown": lambda model, missing=(), spent_usd=0.0: (
            f"the cost of an answer of '{model}' is not known{_unknown(missing)}, so a limit of cost cannot be enforced"
            f"{_spent(spent_usd)}"
        ),
        "control_item_without_sound": "the item '{id}', whose sound was to be used, has none",
        "model_not_started_error": "the model '{model}' could not be started: {type}: {cause}",
        "batches_stopped": lambda causes: causes if isinstance(causes, str) else "; ".join(causes),
        "batch_stopped": lambda batch, state, message="": (
            f"the batch {batch} {'was cancelled' if state == 'cancelled' else state}{message and f': {message}'}"
        ),
        "answers_empty_at_limit": lambda count, model, tokens: (
            f"the first {count} answers of '{model}' are empty and ended at the limit of length"
            + (f" ({tokens:,} tokens)" if tokens else "")
        ),
        "not_a_summary": "'{path}' is not the summary of a run: {type}: {message}",
        "nothing_without_sound": "without its sound there is nothing to ask",
        "answer_audio_not_stored": "the answer's audio cannot be stored: {cause}",
        "number_in_number": "the source looks for a number inside a number, which is no text",
        # Of older records, as `reference_outside_choices`.
        "reference_no_choice": "the reference '{reference}' is none of the choices",
    },
}
