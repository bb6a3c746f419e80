"""How functions are compiled for the CPU: by one process, whose code all others load."""
