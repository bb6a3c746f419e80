"""Synthesise the texts of a manifest with two systems, one file per id."""

import json
import subprocess
import sys
from pathlib import Path

for name in ("espeak", "flite"):
    Path("tts", name).mkdir(parents=True, exist_ok=True)
for line in Path(sys.argv[1], "manifest.jsonl").read_text("utf-8").splitlines():
    row = json.loads(line)
    subprocess.run(["espeak-ng", "-w", f"tts/espeak/{row['id']}.wav", row["text"]], check=True)
    subprocess.run(["flite", "-voice", "kal", "-t", row["text"], "-o", f"tts/flite/{row['id']}.wav"], check=True)
