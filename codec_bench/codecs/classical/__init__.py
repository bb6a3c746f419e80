"""Bitstream codecs that run in this process, one adapter a file."""
