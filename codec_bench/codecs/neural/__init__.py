"""Neural codecs: checkpoint, network and codes, one adapter a file."""
