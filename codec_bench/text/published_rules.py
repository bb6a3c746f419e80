"""The published rules of error rates, reproduced with their errors.

`tests/golden/text` holds their reference cases; each rule's `source` names the repository and commit.
"""

from __future__ import annotations

from codec_bench.text.open_asr import LANGUAGES, VERSIONS
from codec_bench.text.rule import Joined, Recipe, Rule


def published_rules() -> list[Rule]:
    """The rules of seed-tts-eval, UltraEval-Audio, AudioBench and Open ASR."""
    return [*_seed_tts(), *_ultraeval(), *_audiobench(), *_open_asr()]


def _seed_tts() -> list[Rule]:
    """Define the rules of seed-tts-eval."""
    plain = ("delete-punctuation", "halve-spaces")
    spaced = (*plain, "space-characters")
    return [
        Rule(
            "official/seed-tts-eval",
            "seed-tts-eval's: punctuation deleted, Chinese by characters, the mean of the utterances' rates",
            "github.com/BytedanceSpeech/seed-tts-eval 752f429 run_wer.py, average_wer.py",
            {"en": Recipe((*plain, "lower")), "zh": Recipe(spaced, ("zh-cn", *spaced), rate="cer")},
            aggregate="mean",
            fixed=True,
            packages={"zh": ("zhconv",)},
        )
    ]


def _ultraeval() -> list[Rule]:
    """Define the rules of UltraEval-Audio."""
    repository = "github.com/OpenBMB/UltraEval-Audio 9b69da6 audio_evals"
    plain = ("delete-punctuation", "halve-spaces")
    characters = (*plain, "space-black-characters")
    by_character = Recipe(characters, rate="cer")
    english = ("lower", "ultraeval-en")
    long_text = ("num2words-en", "lower", "blank-punctuation", "squeeze")
    return [
        Rule(
            "official/ultraeval-audio/wer",
            "UltraEval-Audio's for speech recognition: Whisper's English rule in every language, sacreBLEU's tokens",
            f"{repository}/lib/wer.py",
            {
                "zh": Recipe((*english, "cn-tn", "sacrebleu-zh", "lower"), rate="cer"),
                "yue": Recipe((*english, "zh-cn", "cn-tn", "sacrebleu-zh", "lower"), rate="wer"),
                "ja": Recipe((*english, "ja-mecab", "lower")),
            },
            Recipe((*english, "sacrebleu-13a", "lower")),
            fixed=True,
            packages={"ja": ("mecab-python3", "ipadic"), "yue": ("zhconv",)},
        ),
        Rule(
            "official/ultraeval-audio/seed-tts",
            "UltraEval-Audio's for synthesised and decoded speech: punctuation deleted, five languages by characters",
            f"{repository}/evaluator/seed_tts_eval_asr_wer.py",
            {
                "zh": Recipe(characters, ("zh-cn", *characters), rate="cer"),
                **{language: by_character for language in ("ja", "ko", "th", "yue")},
            },
            Recipe((*plain, "lower")),
            aggregate="mean",
            fixed=True,
            packages={"zh": ("zhconv",)},
        ),
        Rule(
            "official/ultraeval-audio/naive-wer",
            "UltraEval-Audio's NaiveWER: punctuation deleted, Chinese by characters, no conversion of script",
            f"{repository}/evaluator/wer.py NaiveWER",
            {"en": Recipe((*plain, "lower")), "zh": Recipe((*plain, "space-characters"))},
            aggregate="mean",
            fixed=True,
        ),
        Rule(
            "official/ultraeval-audio/long-tts",
            "UltraEval-Audio's for long synthesised speech: the better of the text and its spoken form, weighted by "
            "words",
            f"{repository}/evaluator/long_tts_eval_asr_wer.py, agg/sp.py",
            {"en": Recipe(long_text), "zh": Recipe((*long_text[1:], "space-around-cjk"))},
            aggregate="weighted",
            fixed=True,
            two_references=True,
            packages={"en": ("num2words",)},
        ),
    ]


def _audiobench() -> list[Rule]:
    """Define the rules of AudioBench, one for each data set."""
    repository = "github.com/AudioLLMs/AudioBench e991641 src/dataset_src"
    after = ("small-numbers", "drop-braces", "jiwer-english", "no-punctuation", "drop-fillers")
    english = ("lower", "whisper-en", *after)
    return [
        Rule(
            name,
            summary,
            f"{repository}/{source}",
            otherwise=Recipe((*steps, "empty-word")),
            fixed=True,
            packages={"th": ("pythainlp",)} if "newmm" in steps else {},
        )
        for name, summary, source, steps in (
            (
                "official/audiobench/asr",
                "AudioBench's for English speech recognition: Whisper's rule, small numbers as words, fillers dropped",
                "librispeech_test_clean.py",
                english,
            ),
            (
                "official/audiobench/asr-code-switch",
                "AudioBench's for Chinese and for Chinese with English: the English one, Chinese by characters",
                "seame_dev_man.py",
                (*english, "space-between-cjk"),
            ),
            (
                "official/audiobench/asr-imda-part4",
                "AudioBench's for part 4 of the National Speech Corpus: as for code switching, symbols and accents "
                "kept",
                "imda_part4_30s_asr_test.py",
                ("lower", "whisper-en-symbols", *after, "space-between-cjk", "squeeze"),
            ),
            (
                "official/audiobench/asr-indonesian",
                "AudioBench's for Indonesian: the English one",
                "gigaspeech2_indo.py",
                english,
            ),
            (
                "official/audiobench/asr-thai",
                "AudioBench's for Thai: the raw text cut into words by pythainlp, case and punctuation included",
                "gigaspeech2_thai.py",
                ("newmm",),
            ),
            (
                "official/audiobench/asr-vietnamese",
                "AudioBench's for Vietnamese: lower case, whatever is not alphanumeric a space, no normal form",
                "gigaspeech2_viet.py",
                ("lower", "alphanumeric"),
            ),
        )
    ]


def _open_asr() -> list[Rule]:
    """Define the rules of the Open ASR leaderboard, by version."""
    commits = dict(zip(VERSIONS, ("b45a5d9", "5429f77", "6962cd2", "d1e99b2"), strict=True))
    return [
        Rule(
            f"official/open-asr/{version}",
            f"the Open ASR leaderboard's as of {version}: English by its own form of Whisper's rule, five languages "
            "with numbers written out",
            f"github.com/huggingface/open_asr_leaderboard {commit} normalizer",
            {
                "en": Recipe((f"open-asr-{version}",), joined=("compounds",) if version >= "2026-06-11" else ()),
                **{
                    language: Recipe((f"open-asr-{language}",), joined=_english_joins(version))
                    for language in LANGUAGES
                },
            },
            empty_reference="counted" if version >= "2026-06-11" else "undefined",
            fixed=True,
            packages={language: ("num2words",) for language in LANGUAGES},
        )
        for version, commit in commits.items()
    ]


def _english_joins(version: str) -> tuple[Joined, ...]:
    return ("pairs", "compounds") if version >= "2026-06-22" else ("pairs",)
