"""Speaker encoders, one adapter a file."""
