BEGIN TRANSACTION;
CREATE TABLE answers (
    number INTEGER PRIMARY KEY, status TEXT NOT NULL, reason TEXT, text TEXT, audio TEXT, usage TEXT, latency_s REAL,
    first_s REAL, finish TEXT, cut_s REAL NOT NULL, attempts INTEGER NOT NULL, cached INTEGER NOT NULL, notes TEXT);
INSERT INTO "answers" VALUES(0,'ok',NULL,'Paris',NULL,'{}',NULL,NULL,NULL,0.0,1,0,'[]');
INSERT INTO "answers" VALUES(1,'ok',NULL,'Rome',NULL,'{}',NULL,NULL,NULL,0.0,1,0,'[]');
INSERT INTO "answers" VALUES(5,'failed','the row has nothing in ''question''',NULL,NULL,'{}',NULL,NULL,NULL,0.0,1,0,'[]');
CREATE TABLE items (
    system INTEGER NOT NULL, sample INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT, bits REAL, notes TEXT,
    audio TEXT, PRIMARY KEY (system, sample)) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('schema','1');
INSERT INTO "meta" VALUES('fingerprint','{"asked": {"benchmark": "capitals", "data": {"path": "rows.jsonl", "layout": "table", "columns": {"question": "q", "reference": "right", "level": "level"}, "optional": [], "id": "id"}, "fields": {}, "language": "en", "wants": "text", "parameters": {}, "prompt": {"name": "inline", "messages": [{"role": "system", "content": [{"text": "Be brief."}]}, {"role": "user", "content": [{"text": "{{ question }}"}]}]}, "model": {"echo": 1, "code": "2ae7b3e2b1f09292"}, "limit": null, "seed": 0, "revision": "03f86462182f6d87294685fa3dd318ea5132c1fe"}, "scored": {"postprocess": [], "metrics": {"accuracy[exact]": "accuracy/exact-1", "wer[answer]": "wer/answer/by-language-1"}, "subsets": {"level": "level"}, "process": [], "chains": {}, "judge": null}}');
INSERT INTO "meta" VALUES('config','{"command": "run", "benchmark": "capitals", "model": "echo", "data": "capitals", "seed": 0, "limit": null, "systems": ["echo"], "metrics": ["accuracy[exact]", "wer[answer]"], "options": {}}');
INSERT INTO "meta" VALUES('benchmark','{"name": "capitals", "title": "Capitals", "summary": "Six questions about capitals.", "category": "QA", "kind": "qa", "language": "en", "licence": null, "size": null, "paper": null, "primary": "accuracy[exact]", "subsets": ["level"], "published": []}');
INSERT INTO "meta" VALUES('answer_steps','[]');
INSERT INTO "meta" VALUES('versions','{"python": "3.11.7", "codec-bench": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.1", "numba": "0.68.1", "torch": "2.11.0", "torchaudio": "2.11.0", "transformers": "5.23.0", "onnxruntime": "1.31.1", "av": "18.1.0", "soundfile": "0.14.0", "soxr": "1.1.0", "pesq": "0.0.4", "pocketsphinx": "5.1.1", "speechmos": "0.0.1.1", "Resemblyzer": "0.1.4", "whisper-normalizer": "0.1.15", "ctranslate2": "4.8.5", "faster-whisper": "1.2.1", "funasr": "1.4.16", "s3prl": "0.4.18", "pyworld": "0.3.5", "OpenCC": "1.4.2", "wetext": "0.1.8", "zhconv": "1.4.3"}');
INSERT INTO "meta" VALUES('machine','{"system": "Linux x86_64", "cpu": "Intel(R) Xeon(R) Processor @ 2.50GHz", "cores": 2, "memory_gib": 23.5, "gpu": "none"}');
INSERT INTO "meta" VALUES('how','{"device": "auto", "cache": false}');
INSERT INTO "meta" VALUES('started','"2026-11-22T04:19:36+00:00"');
INSERT INTO "meta" VALUES('state','"answering"');
INSERT INTO "meta" VALUES('data','{"name": "capitals", "samples": null, "fingerprint": "03f86462182f6d87294685fa3dd318ea5132c1fe", "unmatched": []}');
CREATE TABLE metrics (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
INSERT INTO "metrics" VALUES(0,'accuracy[exact]','{"protocol": "accuracy/exact-1", "kind": "answer", "unit": "", "higher_is_better": true, "range": [0.0, 1.0], "aggregate": "mean", "paper": "", "source": "", "summary": "The share of right answers. Higher is better; 1 is every answer right."}');
INSERT INTO "metrics" VALUES(1,'wer[answer]','{"protocol": "wer/answer/by-language-1", "kind": "answer", "unit": "", "higher_is_better": false, "range": [0.0, null], "aggregate": "ratio", "paper": "Levenshtein: Binary codes capable of correcting deletions, insertions and reversals, 1966", "source": "counts equal to jiwer 4.0''s; the rule of the text is in the protocol", "summary": "Word error rate of an answer that is a transcript. Lower is better; insertions can take it above 1."}');
CREATE TABLE questions (
    number INTEGER PRIMARY KEY, fields TEXT NOT NULL, expected TEXT NOT NULL, subsets TEXT NOT NULL, prompt TEXT, audio TEXT);
INSERT INTO "questions" VALUES(0,'{"question": "capital of France | Paris", "level": "easy"}','["Paris"]','{"level": "easy"}','system: Be brief.

user: capital of France | Paris',NULL);
INSERT INTO "questions" VALUES(1,'{"question": "capital of Italy | Rome", "level": "easy"}','["Rome", "Roma"]','{"level": "easy"}','system: Be brief.

user: capital of Italy | Rome',NULL);
INSERT INTO "questions" VALUES(5,'{"question": null, "level": "easy"}','["never asked"]','{"level": "easy"}',NULL,NULL);
CREATE TABLE readings (
    number INTEGER PRIMARY KEY, transcript TEXT, parsed TEXT, reason TEXT);
CREATE TABLE samples (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, audio TEXT, text TEXT, speaker TEXT, language TEXT,
    duration_s REAL, sample_rate_hz INTEGER, channels INTEGER, notes TEXT);
INSERT INTO "samples" VALUES(0,'a1',NULL,'Paris',NULL,'en',NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(1,'a2',NULL,'Rome',NULL,'en',NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(5,'a6',NULL,'never asked',NULL,'en',NULL,NULL,NULL,NULL);
CREATE TABLE scores (
    system INTEGER NOT NULL, metric INTEGER NOT NULL, sample INTEGER NOT NULL, value REAL, status TEXT NOT NULL,
    reason TEXT, numerator REAL, denominator REAL, detail TEXT, PRIMARY KEY (system, metric, sample)) WITHOUT ROWID;
CREATE TABLE systems (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
INSERT INTO "systems" VALUES(0,'echo','{"name": "echo", "family": null, "inputs": ["text", "audio"], "outputs": ["text"], "reads": "messages", "limit_s": null, "window_s": null, "languages": [], "licence": null, "paper": "", "echo": 1}');
COMMIT;
