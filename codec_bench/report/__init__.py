"""What people look at: tables for the terminal, and HTML pages with sound and plots, each in one file.

This room reads only the records of the store and the statistics that are made from them.
"""
