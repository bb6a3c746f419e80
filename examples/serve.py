"""A local chat endpoint in OpenAI's format.

It takes a recording and answers as pitch_model.py does.
"""

import base64
import io
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import soundfile
from pitch_model import answer


class Chat(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions."""

    def do_POST(self):
        """One question."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        parts = request["messages"][-1]["content"]
        sound = next(content["input_audio"]["data"] for content in parts if content["type"] == "input_audio")
        samples, rate_hz = soundfile.read(io.BytesIO(base64.b64decode(sound)), dtype="float32", always_2d=True)
        message = {"role": "assistant", "content": answer(samples[:, 0], rate_hz)}
        reply = {"model": "pitch-1", "choices": [{"message": message, "finish_reason": "stop"}]}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", 8000), Chat).serve_forever()
