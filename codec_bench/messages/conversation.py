"""Codes of spoken conversations."""

from __future__ import annotations

SENTENCES = {
    "info": {
        # Why a measure has no value, or an event was not spoken.
        "no_backchannel": "the model gave no backchannel",
        "not_answered": "the model did not answer",
        "answered_early": "the answer began before the user had ended",
        "interrupted_silence": "the model was not speaking when it was interrupted",
        "not_yielded": "the model spoke on for more than {limit_s:g} s",
        "backchannel_in_silence": "the model was not speaking at the backchannel",
        "answer_ended_then": "the answer ended by itself so soon after",
        "answer_at_once": "the answer came at once",
        "no_word_recognised": "no word was recognised",
        "first_word_early": "the first word came before the user had ended",
        "user_spoke_again": "the user spoke again before the model did",
        "words_no_turn": "the words are no turn",
        "nothing_voiced": "nothing in it is voiced",
        "digitally_silent": "it is silent",
        "too_short_for_praat": "it is too short for Praat",
        "nothing_of_part": "there is nothing of this part",
        "answer_already_over": "the answer had ended before this moment of it",
        "no_answer_within": "there was no answer within {limit_s:g} s",
        "score_status": "{status}: {cause}",
        "no_sound_or_answer": "it has no sound or no expected answer",
    },
    "error": {
        "pause_at_end": "'say' begins or ends with a pause; a pause lies between two sounds",
        "fields_of_recording": "'said' and 'backchannels' belong to a 'recording'",
        "first_turn_time": "the first turn has no answer before it; give it 'at_s'",
        "id_twice": "the id '{id}' stands twice",
        "no_run_to_mark": "no run is named to be scored again",
        "judge_without_text_answers": "the model '{model}' does not answer texts in text, so it cannot judge",
        "folder_of_other_run": "'{folder}' holds another run: {differences} differs",
        "no_session_to_replay": "'{run}' holds no whole session whose user could be repeated",
        "replay_rate": "the run that is replayed sent {rate_hz} Hz, and '{model}' takes {model_rate_hz} Hz",
        "no_full_duplex_sample": "'{folder}' holds no sample of Full-Duplex-Bench",
        "full_duplex_kind": "the sample '{sample}' of Full-Duplex-Bench 1.5 is in '{folder}'",
        "words_of_other_session": "the words in '{path}' are of another session",
        "not_words": "'{path}' does not hold words: {type}: {cause}",
        "takes_no_conversation_sound": "the model '{model}' does not take a conversation with sound",
        "text_unspoken": "the model '{model}' answers in text, and nobody speaks it",
        "does_not_speak": "the model '{model}' does not speak",
        "verdict_of_other_session": "the verdict in '{path}' is of other words or of another session",
        "question_unspeakable": "the question '{id}' of '{benchmark}' cannot be spoken: {cause}",
        "session_changed": "the session '{folder}' is not as it was written",
        "session_files_mixed": "the files of '{run}' are of different moments: older is {file}",
        "recogniser_without_times": "the recogniser '{recogniser}' gives no times of words",
        "turn_end_rule": (
            "the rule for the end of a turn is '{rule}'; expected {known}, a colon, and 0.05 to 10 seconds"
        ),
        "script_sound_unreadable": "the audio '{sound}' of the script cannot be read: {cause}",
        "script_sound_unknown": (
            "the script names the audio '{sound}', which is neither an id of its data nor a file in '{folder}'"
        ),
        "script_sound_without_speech": "the audio '{sound}' of the script has no speech in it",
        "no_speech_in_span": (
            "the recording '{recording}' of the conversation '{id}' has no speech from {begin_s:g} to {end_s:g} s"
        ),
        "no_answer_sound": "the model gave no sound",
        "turn_not_answered": "the answer {status}: {cause}",
        "answer_not_read": "the reading {status}: {cause}",
        "connection_late": "the service did not open the connection in time",
        "words_without_sound": "the service answered in words and sent no sound",
        "frames_late": lambda p99_s, most_s, frame_s, limit_s: (
            f"slower than real time: the 99th percentile of the frames' lateness is {1000 * p99_s:.0f} ms and the most "
            f"is {1000 * most_s:.0f} ms; expected at most {1000 * frame_s:.0f} and {1000 * limit_s:.0f} ms"
        ),
        "frames_waiting": "slower than real time: {frames} frames of sound waited for the model",
        "connection_closed": "the service closed the connection after {at_s:.2f} s of the session",
        "odd_sound_bytes": "a message holds {bytes} bytes of sound, which are no 16-bit samples",
        "sound_beyond_session": "more sound came than the {most_s:g} s of the longest session hold",
        "message_twice": "the message '{id}' came twice",
        "sound_after_answer": ("sound of the answer '{answer}' came after the service had ended it or started another"),
        "session_not_begun": "the service did not begin the session within {limit_s:g} s",
        "session_too_long": "the session was not over after {longest_s:g} s, the longest that the script allows",
        "service_rate": "the service speaks at {stated} Hz; expected {expected} Hz",
        "clock_went_back": "the clock went back by {by_s:.3f} s",
        "needs_parselmouth": "pitch and intensity as Full-Duplex-Bench takes them need the package 'praat-parselmouth'",
    },
}
