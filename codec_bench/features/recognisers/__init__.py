"""Speech recognisers, one adapter a file."""
