"""Sound in and out: decoding, resampling, encoding, hashing. The only room where a sample rate changes."""
