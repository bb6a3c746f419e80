"""A metric of one's own that reads who speaks."""

from codec_bench import Metric, Score


class SpeakerLength(Metric):
    """How many letters the speaker's name has."""

    name = "speaker_length"
    kind = "single"
    protocol = "speaker-length/1"

    def compute(self, batch):
        return [Score.ok(float(len(item.speaker)), self.protocol) for item in batch]
