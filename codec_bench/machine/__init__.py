"""This process and its machine.

Which file to open
    `environment.py` what is installed, cores and versions. `memory.py` memory of the host and of a device, and what to
    do when it is full. `process_state.py` state of this process that foreign code changes, restored.
"""
