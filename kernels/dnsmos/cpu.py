"""The two DNSMOS networks over a signal's windows, with shared work.

Windows of 900 frames start every 100 frames. The P.835 network (`sig_bak_ovr`) is a stack of 3x3 convolutions with 2x2
maxima, so its activations over the whole signal are those of every window, except near a window's zero-padded ends. So
a *run* of windows is computed once, as one long picture, and the rows near each inner end again with the zeros, as
*edges*. At full, half and quarter resolution a window starts at a whole row (100, 50, 25); the last stage runs per
window. The P.808 network (`model_v8`) runs per window: its input is relative to each window's maximum.

Conventions
    As in `winograd`: rows are time, activations are `(rows, columns, channels)`. Row r of a picture is row r + 1 of its
        array; row 0 and the rows after the last are zero.
    A result does not depend on the division of rows into segments, so not on the number of threads.
"""

from .p808 import P808
from .p835 import SigBakOvr
from .pictures import Crew

__all__ = ["P808", "Crew", "SigBakOvr"]
