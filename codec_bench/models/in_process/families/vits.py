"""VITS (the MMS voices): speech synthesis in one pass. Random noise varies the manner of speaking."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.models.in_process.families.base import Family, Row, drawing
from codec_bench.models.in_process.families.checkpoint import As, load_net
from codec_bench.models.in_process.families.settings import Settings
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Request, Response


class Vits(Family):
    """Speaks the field `text`, one request at a time. The noise of a request begins at its seed, which is 0 by default.

    The model has one voice and cannot imitate others.
    """

    def load(self) -> None:
        """Loads network and tokenizer."""
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(str(self.loading.folder), local_files_only=True)
        how = As("VitsModel", self.loading.dtype)
        self.net = load_net(how, self.loading.folder, self.loading.model_type, self.loading.device)

    def prepare(self, request: Request) -> Row:
        """The characters of the text.

        Raises:
            UserError: the request has no text, or it has a voice to imitate.
        """
        text = request.fields.get("text")
        if not isinstance(text, str) or not text.strip():
            raise UserError("the request has no text in the field 'text' to speak")
        if any(isinstance(value, Clip) for value in request.fields.values()):
            raise UserError("the model has a single voice, and the request has a voice to imitate")
        inputs = self.tokenizer(text, return_tensors="pt")
        if not inputs["input_ids"].shape[1]:
            raise UserError(f"the model knows none of the characters of the text {text[:80]!r}")
        return Row(dict(inputs), wants=request.wants)

    def answer(self, rows: Sequence[Row], settings: Settings) -> list[Response]:
        """Speech for each row."""
        return [self._said(row, settings) for row in rows]

    def _said(self, row: Row, settings: Settings) -> Response:
        noise = Settings(temperature=1.0, seed=settings.seed)
        inputs = {key: value.to(self.loading.device) for key, value in row.inputs.items()}
        with computing(self.loading.device, "float32"), drawing(noise, self.loading.device):
            wave = self.net(**inputs).waveform
        audio = Audio(wave.reshape(1, -1).float().cpu().numpy(), self.net.config.sampling_rate)
        return Response(audio=audio, finish="stop")
