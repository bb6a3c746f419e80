"""Reading, resampling, writing and hashing sound. No other room changes a sample rate."""
