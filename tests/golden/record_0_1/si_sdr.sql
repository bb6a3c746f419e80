BEGIN TRANSACTION;
CREATE TABLE items (
    system INTEGER NOT NULL, sample INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT, bits REAL, notes TEXT,
    audio TEXT, PRIMARY KEY (system, sample)) WITHOUT ROWID;
INSERT INTO "items" VALUES(0,1,'ok',NULL,193368.0,NULL,NULL);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('schema','1');
INSERT INTO "meta" VALUES('fingerprint','{"data": "72ebfd44c6ec69585f1a3e7a9e8b7909bcdf8a8d", "samples": 6, "systems": {"g722": {"name": "g722", "sample_rates_hz": [16000], "channels": [1], "frame_rate_hz": 50.0, "nominal_bitrate_bps": 64000.0, "causal": true, "lookahead_s": 0.001375, "code_licence": "LGPL-2.1-or-later", "weights_licence": null, "weights": null, "paper": "ITU-T G.722"}, "opus-12k": {"name": "opus-12k", "sample_rates_hz": [8000, 12000, 16000, 24000, 48000], "channels": [1, 2], "frame_rate_hz": 50.0, "nominal_bitrate_bps": 12000.0, "causal": true, "lookahead_s": 0.0065, "code_licence": "BSD-3-Clause", "weights_licence": null, "weights": null, "paper": "RFC 6716, https://www.rfc-editor.org/rfc/rfc6716"}}, "metrics": {"stoi": "stoi/pystoi-0.4", "bitrate": "bitrate/payload", "si_sdr": "si_sdr/no-zero-mean"}, "features": {}, "options": {}, "signals": "mono-mean/soxr-hq/cut-to-1", "seed": 0, "limit": 6}');
INSERT INTO "meta" VALUES('config','{"command": "evaluate", "data": "embedded", "seed": 0, "limit": 6, "systems": ["g722", "opus-12k"], "metrics": ["stoi", "bitrate", "si_sdr"], "options": {}}');
INSERT INTO "meta" VALUES('how','{"device": "auto", "workers": 1, "batch_s": null, "time_limit_s": null, "cache": true}');
INSERT INTO "meta" VALUES('versions','{"python": "3.11.7", "codec-bench": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.1", "numba": "0.68.1", "torch": "2.11.0", "torchaudio": "2.11.0", "transformers": "5.23.0", "onnxruntime": "1.31.1", "av": "18.1.0", "soundfile": "0.14.0", "soxr": "1.1.0", "pesq": "0.0.4", "pocketsphinx": "5.1.1", "speechmos": "0.0.1.1", "Resemblyzer": "0.1.4", "whisper-normalizer": "0.1.15", "ctranslate2": "4.8.5", "faster-whisper": "1.2.1", "funasr": "1.4.16", "s3prl": "0.4.18", "pyworld": "0.3.5", "OpenCC": "1.4.2", "wetext": "0.1.8", "zhconv": "1.4.3"}');
INSERT INTO "meta" VALUES('machine','{"system": "Linux x86_64", "cpu": "Intel(R) Xeon(R) Processor @ 2.50GHz", "cores": 2, "memory_gib": 23.5, "gpu": "none"}');
INSERT INTO "meta" VALUES('started','"2026-11-22T04:03:18+00:00"');
INSERT INTO "meta" VALUES('state','"running"');
INSERT INTO "meta" VALUES('data','{"name": "embedded", "samples": 6, "fingerprint": "72ebfd44c6ec69585f1a3e7a9e8b7909bcdf8a8d", "unmatched": []}');
CREATE TABLE metrics (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
INSERT INTO "metrics" VALUES(0,'stoi','{"protocol": "stoi/pystoi-0.4", "kind": "pair", "unit": "", "higher_is_better": true, "range": [-1.0, 1.0], "aggregate": "mean", "paper": "Taal, Hendriks, Heusdens, Jensen: An Algorithm for Intelligibility Prediction of Time-Frequency Weighted Noisy Speech, IEEE TASLP 19(7), 2011", "source": "pystoi 0.4.1, to 1e-6", "summary": "Short-time objective intelligibility. Higher is better; 1 for a perfect copy, and no unit."}');
INSERT INTO "metrics" VALUES(1,'bitrate','{"protocol": "bitrate/payload", "kind": "single", "unit": "bit/s", "higher_is_better": false, "range": [0.0, null], "aggregate": "ratio", "paper": "", "source": "the codec''s own codes", "summary": "Bits per second that were sent: packed codes, packets and side information, container overhead left out."}');
INSERT INTO "metrics" VALUES(2,'si_sdr','{"protocol": "si_sdr/no-zero-mean", "kind": "pair", "unit": "dB", "higher_is_better": true, "range": [null, null], "aggregate": "mean", "paper": "Le Roux, Wisdom, Erdogan, Hershey: SDR - Half-baked or Well Done?, ICASSP 2019", "source": "torchmetrics scale_invariant_signal_distortion_ratio in float64, to 1e-4 dB", "summary": "Scale-invariant signal-to-distortion ratio in dB. Higher is better; it has no bound."}');
CREATE TABLE samples (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, audio TEXT, text TEXT, speaker TEXT, language TEXT,
    duration_s REAL, sample_rate_hz INTEGER, channels INTEGER, notes TEXT);
INSERT INTO "samples" VALUES(0,'awb_01','{embedded}/awb_01.flac','The farmer put seven white eggs in a round basket.','awb','en',NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(1,'awb_05','{embedded}/awb_05.flac','Fresh bread and butter were waiting on the kitchen table.','awb','en',3.02,16000,1,NULL);
INSERT INTO "samples" VALUES(2,'awb_08','{embedded}/awb_08.flac','Our teacher wrote the answer in large letters on the wall.','awb','en',NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(3,'kal16_06','{embedded}/kal16_06.flac','A good map would have saved us an hour on the road.','kal16','en',NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(4,'rms_01','{embedded}/rms_01.flac','The captain gave the order and the ship began to move.','rms','en',NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(5,'rms_06','{embedded}/rms_06.flac','You should drink more water when the weather is this hot.','rms','en',NULL,NULL,NULL,NULL);
CREATE TABLE scores (
    system INTEGER NOT NULL, metric INTEGER NOT NULL, sample INTEGER NOT NULL, value REAL, status TEXT NOT NULL,
    reason TEXT, numerator REAL, denominator REAL, detail TEXT, PRIMARY KEY (system, metric, sample)) WITHOUT ROWID;
INSERT INTO "scores" VALUES(0,0,1,9.9247061292254246112e-01,'ok',NULL,9.9247061292254246112e-01,1.0,NULL);
INSERT INTO "scores" VALUES(0,1,1,6.40291390728476835642e+04,'ok',NULL,193368.0,3.02,NULL);
INSERT INTO "scores" VALUES(0,2,1,2.62947897875879874627e+01,'ok',NULL,2.62947897875879874627e+01,1.0,NULL);
CREATE TABLE systems (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
INSERT INTO "systems" VALUES(0,'g722','{"name": "g722", "sample_rates_hz": [16000], "channels": [1], "frame_rate_hz": 50.0, "nominal_bitrate_bps": 64000.0, "causal": true, "lookahead_s": 0.001375, "code_licence": "LGPL-2.1-or-later", "weights_licence": null, "weights": null, "paper": "ITU-T G.722", "where": "cpu", "batch_s": 60.0}');
INSERT INTO "systems" VALUES(1,'opus-12k','{"name": "opus-12k", "sample_rates_hz": [8000, 12000, 16000, 24000, 48000], "channels": [1, 2], "frame_rate_hz": 50.0, "nominal_bitrate_bps": 12000.0, "causal": true, "lookahead_s": 0.0065, "code_licence": "BSD-3-Clause", "weights_licence": null, "weights": null, "paper": "RFC 6716, https://www.rfc-editor.org/rfc/rfc6716", "where": "cpu", "batch_s": 60.0}');
COMMIT;
