"""What the commands do, as functions: one file a verb. `codec_bench` exports them."""
