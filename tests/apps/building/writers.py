"""Models that write, check and cut without a network. What stands in a description makes them fail."""

import json
import re

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Scripted(Model):
    """Replies by what the request is; `log` gets a line for each request."""

    info = ModelInfo("scripted")
    concurrency = 4

    def __init__(self, log):
        self.log = log

    @property
    def identity(self):
        return {type(self).__name__: 1, "log": self.log}

    async def ask(self, request):
        (text,) = request.messages[-1].content
        with open(self.log, "a") as file:
            file.write(json.dumps(text) + "\n")
        return self.reply(text)


class Writer(Scripted):
    """Writes about the first word of the description, which stands between the marks."""

    def reply(self, text):
        known = re.search(r"<description \w+>\n(.*?)\n</description", text, re.S)[1]
        if "unheard" in known:
            return Response.failed("the line is down")
        if "garbled" in known:
            return Response(text="Here you are: [1, 2")
        if "options that are wrong" in text:
            right = re.search(r"<answer \w+>\n(.*?)\n</answer", text, re.S)[1]
            others = [right] * 3 if "alike" in known else ["one", "two", "three"]
            return Response(text=f"```json\n{json.dumps(others)}\n```")
        count = int(re.search(r"Write (\d+) question", text)[1]) - ("scarce" in known)
        about = {"about": "louder"} if '"louder":' in text and "louder" in known else {}
        texts = "The music, by far." if "mistaken" in known else "It is the speech that is louder."
        answer = texts if about else f"Because of {known.split()[0]}."
        return Response(
            text=json.dumps(
                [{"question": f"Question {n + 1} about {known}?", "answer": answer, **about} for n in range(count)]
            )
        )


class Judge(Scripted):
    """Says no where the question says that it is bad."""

    def reply(self, text):
        return Response(text="perhaps" if "doubtful" in text else "No." if "is bad" in text else "Yes, it is.")


class Cutter(Scripted):
    """A new topic begins at every second line."""

    def reply(self, text):
        lines = re.findall(r"^(\d+)\. ", text, re.M)
        return Response(text="[2, 1]" if "muddled" in text else f"[{', '.join(lines[::2])}]")
