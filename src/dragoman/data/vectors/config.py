"""How images and series become sequences of vectors: `task.image` and `task.series` of a run."""

from dataclasses import dataclass, field
from typing import Literal

from dragoman.config import LEFT_OUT, check_not_negative
from dragoman.errors import UserError

STUDENT = 3
"""Parameters of a Student's t distribution."""


@dataclass(frozen=True)
class ImageInput:
    """Images as square patches, row by row. Sizes and statistics are taken from the training images."""

    height: int = 0
    width: int = 0
    channels: int = 0
    """1: grey. 3: colour."""
    patch: int = 0
    """Side of a square patch in pixels. 0: chosen for about 64 patches per image."""
    mean: tuple[float, ...] = ()
    """Mean of each channel of the training images, on a scale of 0 for black to 1 for white."""
    std: tuple[float, ...] = ()
    shift: int = 0
    """Augmentation: each training image is moved by up to this number of pixels, anew in every epoch."""
    rotate: float = field(default=0.0, metadata=LEFT_OUT)
    """Augmentation: and turned by up to this number of degrees."""
    flip: bool = False
    """Augmentation: half of the training images are mirrored."""

    def __post_init__(self) -> None:
        check_not_negative(self, "height", "width", "channels", "patch", "shift", "rotate")
        if self.rotate > 180:
            raise UserError(f"rotate: expected at most 180 degrees, found {self.rotate:g}")
        if self.channels not in (0, 1, 3):
            raise UserError(f"channels: expected 1 for grey or 3 for colours, found {self.channels}")
        if self.patch and (self.height % self.patch or self.width % self.patch):
            raise UserError(
                f"patch: {self.height} × {self.width} pixels cannot be cut into squares of {self.patch}"
            )

    @property
    def places(self) -> int:
        """Number of vectors per image."""
        return (self.height // self.patch) * (self.width // self.patch)

    @property
    def vector(self) -> int:
        """Number of values per vector."""
        return self.channels * self.patch**2


@dataclass(frozen=True)
class SeriesInput:
    """Series as patches of neighbouring steps. Names and statistics are taken from the training series."""

    window: int = 0
    """Number of input steps. 0: 336 for forecasts, the length of the longest series for labels."""
    patch: int = 0
    """Number of steps per vector. 0: 16 for forecasts, 1/32 of the window for labels."""
    stride: int = 0
    """Steps from the start of one vector to the next. 0: half a patch for forecasts, a whole patch for
    labels."""
    horizon: int = 96
    """forecast: number of steps to predict."""
    columns: tuple[str, ...] = ()
    """forecast: names of the channels. Empty: all columns that hold numbers."""
    channels: Literal["independent", "together"] = "independent"
    """forecast: whether each channel is a sequence of its own, with shared weights (Nie et al. 2023), or all
    channels form one vector."""
    split: tuple[float, ...] = (0.7, 0.1, 0.2)
    """forecast: shares of the steps for training, validation and test, in this order, or their numbers."""
    by_window: bool = True
    """forecast: whether each window is normalised by its own mean and standard deviation. The output is
    scaled back."""
    quantiles: tuple[float, ...] = ()
    """forecast: quantiles to predict instead of the mean. They must include 0.5."""
    distribution: Literal["quantiles", "student"] = field(default="quantiles", metadata=LEFT_OUT)
    """forecast: what is learnt besides the mean. `quantiles`: those quantiles, each for itself. `student`: a
    Student's t distribution for every number, from which the quantiles are computed."""
    season: int = 0
    """forecast: length of a season in steps, for the seasonal baseline. 0: estimated from the training
    part."""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_not_negative(self, "window", "patch", "stride", "season")
        if self.horizon < 1:
            raise UserError(f"horizon: expected a whole number of at least 1, found {self.horizon}")
        if len(self.split) != 3 or not all(share >= 0 for share in self.split) or not self.split[0]:
            raise UserError(
                f"split: expected three shares or numbers of steps, such as [0.7, 0.1, 0.2], found "
                f"{list(self.split)}"
            )
        if list(self.quantiles) != sorted({q for q in self.quantiles if 0 < q < 1}):
            raise UserError(
                f"quantiles: expected rising numbers between 0 and 1, found {list(self.quantiles)}"
            )
        if self.distribution == "student" and not self.quantiles:
            object.__setattr__(self, "quantiles", (0.1, 0.5, 0.9))
        if self.quantiles and 0.5 not in self.quantiles:
            raise UserError(f"quantiles: the forecast is the median; add 0.5 to {list(self.quantiles)}")
        if self.patch and self.window and self.stride:
            over = self.window - self.patch
            if over < 0 or over % self.stride:
                raise UserError(
                    f"window: {self.window} steps are not whole patches of {self.patch} with a stride of "
                    f"{self.stride}; choose one of them differently"
                )

    @property
    def places(self) -> int:
        return (self.window - self.patch) // self.stride + 1

    @property
    def vector(self) -> int:
        return self.patch * self.row_channels

    @property
    def row_channels(self) -> int:
        """Number of channels in a sequence."""
        return len(self.mean) if self.channels == "together" or not self.columns else 1

    @property
    def outputs(self) -> int:
        """How many numbers the network gives for each number to come."""
        return STUDENT if self.distribution == "student" else max(1, len(self.quantiles))

    @property
    def median(self) -> int:
        """Index of the forecast (the median) among the quantiles."""
        return self.quantiles.index(0.5) if self.quantiles else 0
