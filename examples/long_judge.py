"""A judge that likes long answers. It represents one that you do not know yet."""

import re

from codec_bench import Model, ModelInfo, Response


class LongJudge(Model):
    """Marks a text by its length, and prefers the longer of two."""

    info = ModelInfo("long-judge")

    @property
    def identity(self):
        """Whatever changes a verdict."""
        return {"version": 1}

    async def ask(self, request):
        """One verdict."""
        prompt = str(request.messages[-1].content[-1])
        texts = re.findall(r"<(?:answer|first|second) \w+>\n(.*?)\n</", prompt, re.DOTALL)
        if len(texts) == 2:
            return Response(text="first" if len(texts[0]) > len(texts[1]) else "second")
        return Response(text=f"Rating: {min(5, 1 + len(texts[0]) // 50)}")
