"""How images and series become sequences of vectors: `task.image` and `task.series` of a run."""

from dataclasses import dataclass
from typing import Literal

from dragoman.config import check_not_negative
from dragoman.errors import UserError


@dataclass(frozen=True)
class ImageInput:
    """Squares of pixels, row by row. Sizes and statistics are found in the training images."""

    height: int = 0
    width: int = 0
    channels: int = 0
    """1: grey, 3: colours."""
    patch: int = 0
    """Pixels of a side of a square. 0: so that there are about 64 of them."""
    mean: tuple[float, ...] = ()
    """Of each channel of the training images, with 0 for black and 1 for white."""
    std: tuple[float, ...] = ()
    shift: int = 0
    """Augmentation: move each training image by up to so many pixels, anew in every epoch."""
    flip: bool = False
    """Augmentation: mirror half of the training images."""

    def __post_init__(self) -> None:
        check_not_negative(self, "height", "width", "channels", "patch", "shift")
        if self.channels not in (0, 1, 3):
            raise UserError(f"channels: expected 1 for grey or 3 for colours, found {self.channels}")
        if self.patch and (self.height % self.patch or self.width % self.patch):
            raise UserError(
                f"patch: {self.height} × {self.width} pixels cannot be cut into squares of {self.patch}"
            )

    @property
    def places(self) -> int:
        """Vectors of an image."""
        return (self.height // self.patch) * (self.width // self.patch)

    @property
    def vector(self) -> int:
        """Numbers of a vector."""
        return self.channels * self.patch**2


@dataclass(frozen=True)
class SeriesInput:
    """Patches of neighbouring steps. Names and statistics are found in the training series."""

    window: int = 0
    """Steps that are read: 336 for forecasts, the longest series for labels."""
    patch: int = 0
    """Steps of a vector: 16 for forecasts, a 32nd of the window for labels."""
    stride: int = 0
    """Steps from one vector to the next. 0: half of a patch for forecasts, a patch for labels."""
    horizon: int = 96
    """forecast: steps to say."""
    columns: tuple[str, ...] = ()
    """forecast: the channels. Empty: all columns that hold numbers."""
    channels: Literal["independent", "together"] = "independent"
    """forecast: each channel alone with the same weights (Nie et al. 2023), or all in one vector."""
    split: tuple[float, ...] = (0.7, 0.1, 0.2)
    """forecast: shares of the steps to train, validate and test on, in this order; or their numbers."""
    by_window: bool = True
    """forecast: each window less its own mean, over its own deviation; undone at the end."""
    quantiles: tuple[float, ...] = ()
    """forecast: learn these quantiles instead of the mean; 0.5 has to be among them."""
    season: int = 0
    """forecast: steps of a season, for the seasonal baseline. 0: found in the training part."""
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
        """Channels of a sequence."""
        return len(self.mean) if self.channels == "together" or not self.columns else 1

    @property
    def median(self) -> int:
        """The place of the forecast among the quantiles."""
        return self.quantiles.index(0.5) if self.quantiles else 0
