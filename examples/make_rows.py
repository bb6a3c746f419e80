"""Write voice/rows.jsonl: the embedded speech, and whether a woman speaks."""

import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
with open("voice/rows.jsonl", "w", encoding="utf-8") as out:
    for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        who = "woman" if row["speaker"] == "slt" else "man"
        out.write(
            json.dumps({"id": row["id"], "file": str(folder / row["audio"]), "who": who, "voice": row["speaker"]})
            + "\n"
        )
