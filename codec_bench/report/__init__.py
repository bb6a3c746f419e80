"""What people look at: tables for the terminal, and one self-contained HTML page with sound and plots.

This room reads the store's records and the statistics made from them, nothing else.
"""
