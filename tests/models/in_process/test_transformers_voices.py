"""Models that read texts aloud say what transformers' own classes say one by one, each text from its own seed."""

from __future__ import annotations

import sys
import warnings
from contextlib import closing

import miniature
import numpy as np
import pytest
import soundfile
import tiny_voices
from refusals import refuses
from tiny_questions import clip

from codec_bench.models.base import ModelInfo
from codec_bench.models.in_process.transformers_model import TransformersModel
from codec_bench.report.open_run import open_run
from codec_bench.store.answers import exchanges
from codec_bench.types import Request

RATES_HZ = dict.fromkeys(tiny_voices.WRITERS, 24_000) | {"dia": 44_100}
SPEAKERS = {"gradium_phonon_tts": "ida"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    built = {}

    def folder_of(name):
        if name not in built:
            built[name] = tmp_path_factory.mktemp("voices") / name
            tiny_voices.WRITERS[name](built[name])
        return built[name]

    return folder_of


@pytest.fixture(scope="module")
def models(folders):
    built = {}

    def model_of(name):
        if name not in built:
            built[name] = model_in(folders(name), speaker=SPEAKERS.get(name))
        return built[name]

    return model_of


def model_in(folder, **options):
    info = ModelInfo("tiny", outputs=("audio",), reads="fields")
    model = TransformersModel(info, weights=str(folder), device="cpu", **options)
    model.load()
    return model


def send(name, id="a", text="one two", *, voice=0.4, **parameters):
    fields = {"text": text}
    if voice and name != "gradium_phonon_tts":
        sound = clip(voice, 3).signal(RATES_HZ[name])[0]
        fields |= {"prompt_audio": type(clip(0.1, 0))(sound), "prompt_text": "as said"}
    return Request(id, fields=fields, wants="audio", parameters={"max_tokens": 12, **parameters})


def transformers_says(name, folder, request):
    """The answer of the class of transformers to the request alone, by the calls of its model card."""
    import torch
    import transformers

    text, texts = request.fields["text"], request.fields.get("prompt_text")
    wave = request.fields["prompt_audio"].read().samples[0] if texts else None
    seed, room = request.parameters["seed"], request.parameters["max_tokens"]
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        if name == "csm":
            net = transformers.CsmForConditionalGeneration.from_pretrained(folder).eval()
            processor = transformers.AutoProcessor.from_pretrained(folder)
            content = [{"type": "text", "text": texts}, {"type": "audio", "path": wave}]
            turns = [{"role": "0", "content": content}] if texts else []
            turns.append({"role": "0", "content": [{"type": "text", "text": text}]})
            inputs = processor.apply_chat_template(turns, tokenize=True, return_dict=True)
            torch.manual_seed(seed)
            return net.generate(**inputs, max_new_tokens=room, output_audio=True)[0].numpy()
        if name == "dia":
            net = transformers.DiaForConditionalGeneration.from_pretrained(folder).eval()
            codec = transformers.DacModel.from_pretrained(folder / "codec").eval()
            processor = transformers.DiaProcessor(extractor, tokenizer, codec)
            words = f"[S1] {texts} {text}" if texts else f"[S1] {text}"
            sound = {"audio": wave, "sampling_rate": 44_100} if texts else {}
            inputs = processor(text=[words], padding=True, return_tensors="pt", **sound)
            start = processor.get_audio_prompt_len(inputs["decoder_attention_mask"])
            torch.manual_seed(seed)
            codes = net.generate(**inputs, max_new_tokens=room + max(net.config.delay_pattern) + 1)
            return processor.batch_decode(codes, audio_prompt_len=start)[0].numpy()
        if name == "vibevoice":
            net = transformers.VibeVoiceForConditionalGeneration.from_pretrained(folder).eval()
            processor = transformers.AutoProcessor.from_pretrained(folder)
            content = [{"type": "text", "text": text}, *([{"type": "audio", "path": wave}] if texts else [])]
            turns, more = [{"role": "0", "content": content}], {"return_dict": True, "return_tensors": "pt"}
            inputs = processor.apply_chat_template(turns, tokenize=True, **more)
            torch.manual_seed(seed)
            return net.generate(**inputs, max_new_tokens=room)[0].numpy()
        if name == "higgs_audio_v2":
            net = transformers.HiggsAudioV2ForConditionalGeneration.from_pretrained(folder).eval()
            codec = transformers.HiggsAudioV2TokenizerModel.from_pretrained(folder / "codec").eval()
            processor = transformers.HiggsAudioV2Processor(
                extractor, tokenizer, codec, chat_template=tokenizer.chat_template
            )
            details = [
                ("system", "Generate audio following instruction."),
                ("scene", "Audio is recorded from a quiet room."),
            ]
            turns = [{"role": role, "content": [{"type": "text", "text": one}]} for role, one in details]
            if texts:
                turns.append({"role": "user", "content": [{"type": "text", "text": texts}]})
                turns.append({"role": "assistant", "content": [{"type": "audio", "path": wave}]})
            turns.append({"role": "user", "content": [{"type": "text", "text": text}]})
            more = {"add_generation_prompt": True, "return_dict": True, "return_tensors": "pt"}
            inputs = processor.apply_chat_template(turns, tokenize=True, sampling_rate=24_000, **more)
            torch.manual_seed(seed)
            codes = net.generate(**inputs, max_new_tokens=room + net.config.num_codebooks)
            return processor.batch_decode(codes)[0].numpy()
        kind = {"pocket_tts": "PocketTTS", "gradium_phonon_tts": "GradiumPhononTTS"}[name]
        net = getattr(transformers, f"{kind}ForConditionalGeneration").from_pretrained(folder).eval()
        codec = transformers.PocketTTSAudioTokenizerModel.from_pretrained(folder / "codec").eval()
        processor = transformers.PocketTTSProcessor(extractor, tokenizer, codec, chat_template=tokenizer.chat_template)
        if texts:
            voice = {"audio": [wave], "sampling_rate": 24_000}
        else:
            from safetensors.torch import load_file

            held = load_file(folder / "voices" / "ida.safetensors")["speaker_wavs"]
            voice = {"audio_prompt_latents": [held[0].T.contiguous()]}
        content = [{"type": "audio", "path": "x"}, {"type": "text", "text": text}]
        written = processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
        inputs = processor(text=[written], return_tensors="pt", **voice)
        torch.manual_seed(seed)
        out = net.generate(**inputs, max_new_tokens=room)
        return processor.decode(out.audio_latents, out.audio_latents_mask)[0].numpy()


@pytest.mark.parametrize(
    ("name", "voice"),
    [(name, 0.4) for name in sorted(set(tiny_voices.WRITERS) - {"gradium_phonon_tts"})]
    + [(name, None) for name in sorted(set(tiny_voices.WRITERS) - {"pocket_tts"})],
)
def test_it_says_what_transformers_says(name, voice, folders, models):
    request = send(name, voice=voice, seed=4)
    result = models(name).answer([request])[0]
    assert result.status == "ok", result.reason
    assert result.audio.sample_rate_hz == RATES_HZ[name] and result.audio.channels == 1
    expected = transformers_says(name, folders(name), request)
    assert result.audio.num_samples == expected.size > 1000
    assert np.abs(result.audio.samples[0] - expected.reshape(-1)).max() <= 1e-4 * np.abs(expected).max()
    assert result.finish in ("stop", "length")


@pytest.mark.parametrize("name", sorted(tiny_voices.WRITERS))
def test_the_seed_decides_and_neither_order_nor_company(name, models):
    requests = [
        send(name, str(k), text, seed=k, max_tokens=8) for k, text in enumerate(("one", "two words and more", "three"))
    ]
    forth, back = models(name).answer(requests), models(name).answer(requests[::-1])[::-1]
    for request, one, other in zip(requests, forth, back, strict=True):
        alone = models(name).answer([request])[0]
        assert one.status == "ok", one.reason
        assert np.array_equal(one.audio.samples, other.audio.samples)
        assert np.array_equal(one.audio.samples, alone.audio.samples)
    other = models(name).answer([send(name, "0", "one", seed=9, max_tokens=8)])[0]
    assert not np.array_equal(other.audio.samples, forth[0].audio.samples)


@pytest.mark.parametrize("name", sorted(tiny_voices.WRITERS))
def test_an_answer_has_an_end_and_says_that_it_was_cut(name, models):
    model = models(name)
    cut = model.answer([send(name, max_tokens=1, seed=1)])[0]
    assert cut.status == "ok" and cut.finish == "length"
    assert cut.audio.num_samples == round(RATES_HZ[name] / model._family.frame_rate)
    # Without a limit in the request: what slow speech needs, and no more than the network counts.
    row = model._family.prepare(Request("a", fields=send(name).fields, wants="audio"))
    assert 0 < row.rooms[0] <= model._family.positions()


@pytest.mark.parametrize("name", sorted(tiny_voices.WRITERS))
def test_what_it_does_not_take_is_refused(name, models):
    fields = send(name).fields
    wrong = [
        ({}, "no text"), ({"text": "  "}, "no text"), ({**fields, "instruction": "whisper"}, "instruction"),
        ({**fields, "audio": clip(0.3, 1)}, "'audio'"),
    ]  # fmt: skip
    if name in ("csm", "dia", "higgs_audio_v2"):
        wrong.append(({key: value for key, value in fields.items() if key != "prompt_text"}, "'prompt_text'"))
    if name == "pocket_tts":
        wrong.append(({"text": "one"}, "'prompt_audio'"))
    if name == "gradium_phonon_tts":
        wrong.append(({"text": "one", "prompt_audio": clip(0.4, 1)}, "'prompt_audio'"))
    if name != "dia":
        marks = {"csm": "<|AUDIO|>", "higgs_audio_v2": "<|AUDIO_OUT|>", "vibevoice": "<|vision_pad|>"}
        mark = marks.get(name, "<|audio_bos|>")
        wrong.append(({**fields, "text": f"one {mark}"}, mark))
    answers = models(name).answer([Request(str(k), fields=f, wants="audio") for k, (f, _) in enumerate(wrong)])
    assert [answer.status for answer in answers] == ["refused"] * len(wrong)
    for answer, (_, says) in zip(answers, wrong, strict=True):
        assert says in answer.reason


def test_too_much_text_or_voice_is_refused(models):
    long = send("dia", text="word " * 20)
    assert "bytes" in models("dia").answer([long])[0].reason
    csm = models("csm").answer([send("csm", text="word " * 80)])[0]
    assert csm.status == "refused" and "positions" in csm.reason


def test_a_bracket_at_the_beginning_is_not_mistaken_for_a_speaker(models):
    tokenizer = models("dia")._family.processor.tokenizer
    for text, expected in (("[Sighs] so", "[S1] [Sighs] so"), ("[S2] so", "[S2] so"), ("so", "[S1] so")):
        with warnings.catch_warnings():  # what is said to a person holds no warnings of transformers
            warnings.simplefilter("error")
            (item,) = models("dia")._family.inputs(text, None, "")
        assert item["input_ids"][0].tolist() == tokenizer(expected, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("name", ["csm", "dia"])
def test_the_command_runs_a_benchmark_with_it(name, folders, command, tmp_path):
    miniature.build("seed-tts-eval-en", tmp_path / "mirror")
    model, folder = {"csm": "csm-1b", "dia": "dia-1.6b"}[name], folders(name)
    code, _, talk = command(
        "run", "seed-tts-eval-en", "--model", model, "--data", tmp_path / "mirror", "--limit", 3, "--device", "cpu",
        "--workers", 1,
        "--set", f"{model}.weights={folder}", "--set", f"{model}.parameters.max_tokens=12",
        "--set", 'seed-tts-eval-en.metrics=["wer[pocketsphinx]"]', "--out", tmp_path / "run", "--save-audio", "all",
    )  # fmt: skip
    assert code in (0, 3) and "Traceback" not in talk, talk
    with closing(open_run(tmp_path / "run" / "seed-tts-eval-en" / model)) as run:
        answers = [built for built in exchanges(run) if built.answer.status == "ok"]
    output = [soundfile.info(file) for file in (tmp_path / "run").rglob("audio/answers/*.flac")]
    assert len(output) == len(answers) >= 2
    assert {sound.samplerate for sound in output} == {RATES_HZ[name]} and min(sound.frames for sound in output) > 500


def test_an_empty_transcript_is_a_failure_with_a_reason(models, monkeypatch):
    family = models("csm")._family
    monkeypatch.setattr(family, "speak", lambda inputs, room, sampling: (None, True))
    answer = models("csm").answer([send("csm")])[0]
    assert (answer.status, answer.audio) == ("failed", None) and answer.reason.code == "no_sound_made"


def test_a_temperature_of_the_request_replaces_that_of_the_checkpoint(models):
    greedy = [
        models("pocket_tts").answer([send("pocket_tts", temperature=0, seed=seed, max_tokens=6)])[0] for seed in (1, 2)
    ]
    assert np.array_equal(greedy[0].audio.samples, greedy[1].audio.samples)
    drawn = [models("pocket_tts").answer([send("pocket_tts", seed=seed, max_tokens=6)])[0] for seed in (1, 2)]
    assert not np.array_equal(drawn[0].audio.samples, drawn[1].audio.samples)


def test_a_model_without_a_temperature_or_its_package_says_so(models, folders, monkeypatch):
    answer = models("vibevoice").answer([send("vibevoice", temperature=0.7)])[0]
    assert answer.status == "refused" and answer.reason.code == "no_temperature"
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with refuses("package_not_installed", package="diffusers"):
        model_in(folders("vibevoice"))


def test_a_long_text_is_cut_into_sentences(models):
    sentence = "one two three four five six seven."
    row = models("pocket_tts")._family.prepare(send("pocket_tts", text=" ".join([sentence] * 3), max_tokens=3))
    assert len(row.parts) == 3
    answer = models("pocket_tts").answer([send("pocket_tts", text=" ".join([sentence] * 3), max_tokens=3)])[0]
    assert answer.audio.num_samples == 3 * 3 * 1920


def test_a_voice_or_codec_that_is_not_there_is_named(folders, tmp_path):
    import shutil

    with refuses("voice_missing", voice="ben", path="ben"):
        model_in(folders("gradium_phonon_tts"), speaker="ben")
    shutil.copytree(folders("dia"), tmp_path / "dia")
    shutil.rmtree(tmp_path / "dia" / "codec")
    with refuses("no_weights_of_model", weights="codec"):
        model_in(tmp_path / "dia")
