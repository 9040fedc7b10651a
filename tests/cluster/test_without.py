"""Without the extra: one sentence, which says what to install."""

import sys

import pytest

from dragoman.cluster.on_ray import open_cluster
from dragoman.cluster.storage import StoragePlace
from dragoman.errors import UserError


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ray", "fsspec"):
        monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(UserError, match=r"--cluster needs the package 'ray': install it with  pip .*cluster"),
        open_cluster("local", print),
    ):
        pass
    with pytest.raises(UserError, match=r"s3://b/run needs the package 'fsspec': install it with  pip .*"):
        StoragePlace("s3://b/run")
