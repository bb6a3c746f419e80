"""The names that this package adds; listing them imports neither module."""

CODECS = {"mulaw": "mulaw_plugin.codec:MuLaw"}
METRICS = {"crossing_distance": "mulaw_plugin.metric:CrossingDistance"}
