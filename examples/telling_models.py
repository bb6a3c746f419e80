"""Two models that know nothing: one says it briefly, and one in many words."""

from codec_bench import Model, ModelInfo, Response


class Brief(Model):
    """Says the same of every recording."""

    info = ModelInfo("brief", inputs=("text", "audio"))
    says = "A man speaks."

    @property
    def identity(self):
        """Whatever changes an answer."""
        return {"version": 1}

    async def ask(self, request):
        """One answer."""
        return Response(text=self.says)


class Wordy(Brief):
    """Says no more, in more words."""

    info = ModelInfo("wordy", inputs=("text", "audio"))
    says = "I listened to the whole recording with care, and what I hear in it is a man who speaks."
