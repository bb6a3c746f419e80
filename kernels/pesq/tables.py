"""The numbers of P.862 and P.862.2: bands, thresholds and filters, and the two modes that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

Curve = tuple[tuple[float, float], ...]
"""Gains in dB by frequency in Hz, with straight lines between them."""

_BANDS = np.array(
    [  # FFT bins, centre (Bark), width (Bark), correction of the power density, power at the threshold of hearing
        (1, 0.078672, 0.157344, 100.0, 51286152.0),
        (1, 0.316341, 0.317994, 99.999992, 2454709.5),
        (1, 0.636559, 0.322441, 100.0, 70794.59375),
        (1, 0.961246, 0.326934, 100.000008, 4897.788574),
        (1, 1.29045, 0.331474, 100.000008, 1174.897705),
        (1, 1.624217, 0.336061, 100.000015, 389.045166),
        (1, 1.962597, 0.340697, 99.999992, 104.71286),
        (1, 2.305636, 0.345381, 99.999969, 45.70882),
        (2, 2.653383, 0.350114, 50.000027, 17.782795),
        (1, 3.005889, 0.354897, 100.0, 9.772372),
        (1, 3.363201, 0.359729, 99.999969, 4.897789),
        (1, 3.725371, 0.364611, 100.000015, 3.090296),
        (1, 4.092449, 0.369544, 99.999947, 1.905461),
        (1, 4.464486, 0.374529, 100.000061, 1.258925),
        (2, 4.841533, 0.379565, 53.047077, 0.977237),
        (1, 5.223642, 0.384653, 110.000046, 0.724436),
        (1, 5.610866, 0.389794, 117.991989, 0.562341),
        (2, 6.003256, 0.394989, 65.0, 0.457088),
        (2, 6.400869, 0.400236, 68.760147, 0.389045),
        (2, 6.803755, 0.405538, 69.999931, 0.331131),
        (2, 7.211971, 0.410894, 71.428818, 0.295121),
        (2, 7.625571, 0.416306, 75.000038, 0.269153),
        (2, 8.044611, 0.421773, 76.843384, 0.25704),
        (2, 8.469146, 0.427297, 80.968781, 0.251189),
        (2, 8.899232, 0.432877, 88.646126, 0.251189),
        (3, 9.334927, 0.438514, 63.864388, 0.251189),
        (3, 9.776288, 0.444209, 68.15535, 0.251189),
        (3, 10.223374, 0.449962, 72.547775, 0.263027),
        (3, 10.676242, 0.455774, 75.584831, 0.288403),
        (4, 11.134952, 0.461645, 58.379192, 0.30903),
        (3, 11.599563, 0.467577, 80.950836, 0.338844),
        (4, 12.070135, 0.473569, 64.135651, 0.371535),
        (5, 12.546731, 0.479621, 54.384785, 0.398107),
        (4, 13.029408, 0.485736, 73.821884, 0.436516),
        (5, 13.518232, 0.491912, 64.437073, 0.467735),
        (6, 14.013264, 0.498151, 59.176456, 0.489779),
        (6, 14.514566, 0.504454, 65.521278, 0.501187),
        (7, 15.022202, 0.510819, 61.399822, 0.501187),
        (8, 15.536238, 0.51725, 58.144047, 0.512861),
        (9, 16.056736, 0.523745, 57.004543, 0.524807),
        (9, 16.583761, 0.530308, 64.126297, 0.524807),
        (12, 17.117382, 0.536934, 54.311001, 0.524807),
        (12, 17.657663, 0.543629, 61.114979, 0.512861),
        (15, 18.204674, 0.55039, 55.077751, 0.47863),
        (16, 18.758478, 0.55722, 56.849335, 0.42658),
        (18, 19.319147, 0.564119, 55.628868, 0.371535),
        (21, 19.886751, 0.571085, 53.137054, 0.363078),
        (25, 20.461355, 0.578125, 54.985844, 0.416869),
        (20, 21.043034, 0.585232, 79.546974, 0.537032),
    ]
)
_LAST_NARROW = (11, 17.117382, 0.536934, 59.248363, 0.524807)  # this band ends at 4 kHz

_ALIGNMENT_16K = np.array(
    [  # second-order sections: three coefficients of the input, then two of the output
        (0.325631521, -0.08678286, -0.238848661, -1.07941649, 0.434583902),
        (0.403961804, -0.556985881, 0.153024077, -0.415115835, 0.696590244),
        (4.736162769, 3.287251046, 1.753289019, -1.859599046, 0.876284034),
        (0.365373469, 0.0, 0.0, -0.634626531, 0.0),
        (0.884811506, 0.0, 0.0, -0.256725271, 0.141536777),
        (0.723593055, -1.447186099, 0.723593044, -1.129587469, 0.657232737),
        (1.644910855, -1.817280902, 1.249658063, -1.778403899, 0.801724355),
        (0.633692689, -0.284644314, -0.319789663, 0.0, 0.0),
        (1.032763031, 0.268428979, 0.602913323, 0.0, 0.0),
        (1.001616361, -0.823749013, 0.439731942, -0.885778255, 0.0),
        (0.752472096, -0.37538899, 0.188977609, -0.077258216, 0.247230734),
        (1.023700575, 0.001661628, 0.52128424, -0.183867259, 0.354324187),
    ]
)
_ALIGNMENT_8K = np.array(
    [
        (0.885535424, -0.885535424, 0.0, -0.771070709, 0.0),
        (0.895092588, 1.292907193, 0.449260174, 1.268869037, 0.442025372),
        (4.04952794, -7.865190042, 3.815662102, -1.746859852, 0.786305963),
        (0.500002353, -0.500002353, 0.0, 0.0, 0.0),
        (0.565002834, -0.241585934, -0.306009671, 0.259688659, 0.249979657),
        (2.115237288, 0.919935084, 1.141240051, -1.587313419, 0.665935315),
        (0.912224584, -0.224397719, -0.641121413, -0.246029464, -0.55672059),
        (0.444617727, -0.307589321, 0.141638062, -0.996391149, 0.502251622),
    ]
)

LEVEL: Curve = ((300, -500), (350, 0), (3250, 0), (3500, -500))
"""The band whose power sets the level."""

_HANDSET: Curve = (
    (0, -200), (50, -40), (100, -20), (125, -12), (160, -6), (200, 0), (250, 4), (300, 6), (350, 8), (400, 10), (500, 11), (600, 12),
    (3250, 12), (3500, 4), (4000, -200), (8000, -200),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Mode:
    """How is listened: at which rate, through what, and by which mapping a raw score becomes a mean opinion score.

    Attributes:
        rate_hz: the rate of the signals.
        bands: for each band of the Bark scale its FFT bins, centre (Bark), width (Bark), the correction of its power
            density, and the power at the threshold of hearing; `(bands, 5)`.
        density_scale: what powers of a spectrum are multiplied by.
        alignment_filter: sections of second order, three coefficients of the input, then two of the output. Through
            them utterances and delays are found; the scored signals do not pass them.
        listener: what is heard through: one such section, the high-pass of wide-band headphones, or the curve of a
            telephone's receiver.
        slope, middle: of the logistic mapping.
    """

    rate_hz: int
    bands: np.ndarray
    density_scale: float
    alignment_filter: np.ndarray
    listener: np.ndarray | Curve
    slope: float
    middle: float

    @property
    def window(self) -> int:
        """The samples of 4 ms, in which utterances are found."""
        return self.rate_hz // 250

    @property
    def margin(self) -> int:
        """The silence before and behind a signal."""
        return 75 * self.window

    @property
    def padding(self) -> int:
        """The samples behind it that belong to no window."""
        return 80 * self.window

    @property
    def frame(self) -> int:
        """The samples of 32 ms, of which spectra are compared."""
        return 8 * self.window

    @property
    def hop(self) -> int:
        """From one such frame to the next."""
        return 4 * self.window

    @cached_property
    def bins(self) -> np.ndarray:
        """FFT bins of each band."""
        return self.bands[:, 0].astype(np.int64)

    @cached_property
    def centre_bark(self) -> np.ndarray:
        """Centres of the bands."""
        return np.ascontiguousarray(self.bands[:, 1])

    @cached_property
    def width_bark(self) -> np.ndarray:
        """Widths of the bands."""
        return np.ascontiguousarray(self.bands[:, 2])

    @cached_property
    def scale(self) -> np.ndarray:
        """What makes sums of powers of bins a density on the Bark scale."""
        return self.bands[:, 3] * self.density_scale

    @cached_property
    def threshold(self) -> np.ndarray:
        """Densities at the threshold of hearing."""
        return np.ascontiguousarray(self.bands[:, 4])


WIDE = Mode(
    rate_hz=16_000,
    bands=_BANDS,
    density_scale=6.910853e-6,
    alignment_filter=_ALIGNMENT_16K,
    listener=np.array([2.740826, -5.4816519, 2.740826, -1.9444777, 0.94597794]),
    slope=1.3669,
    middle=3.8224,
)
"""P.862.2."""

NARROW = Mode(
    rate_hz=8_000,
    bands=np.vstack([_BANDS[:41], _LAST_NARROW]),
    density_scale=2.764344e-5,
    alignment_filter=_ALIGNMENT_8K,
    listener=_HANDSET,
    slope=1.4945,
    middle=4.6607,
)
"""P.862 with the mapping of P.862.1."""
