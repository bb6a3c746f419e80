"""The two DNSMOS networks over many windows of one signal. What windows have in common is computed once.

Windows of 900 frames start every 100 frames. The P.835 network (`sig_bak_ovr`) is a stack of 3x3 convolutions with
2x2 maxima between them, so its activations over the whole signal are those of every window, except near a window's two
ends: there the window is padded with zeros, while the signal goes on. A *run* of windows is therefore computed once, as
one long picture. The rows near each inner end are computed again with the zeros in place, as *edges*. At full, half and
quarter resolution a window starts at a whole row (100, 50, 25); the last stage is computed for each window by itself.
The input of the P.808 network (`model_v8`) is in decibels relative to each window's own maximum, so this network runs
on each window by itself.

Conventions
    As in `winograd`: rows are time, activations are `(rows, columns, channels)`. Row r of a picture is row r + 1
    of its array; row 0 and the rows after the last are zero.
    A result does not depend on how rows are divided into segments, so neither on the number of threads.
"""

from .p808 import P808
from .p835 import SigBakOvr
from .pictures import Crew

__all__ = ["P808", "Crew", "SigBakOvr"]
