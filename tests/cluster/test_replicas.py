"""What Ray Serve is given by `deploy/ray_serve.py`: the application of `dragoman serve`. Ray itself is for
`benchmarks/replicas.py`."""

import asyncio
from pathlib import Path

import httpx
import pytest

from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.serve.run import given_to_others


def test_the_application_is_given_and_not_served(small_run: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("a-key-of-a-client\n", encoding="utf-8")
    keys.chmod(0o600)
    words = ["serve", str(small_run), "--host", "0.0.0.0", "--device", "cpu"]
    with given_to_others() as gates:
        with pytest.raises(UserError, match="give --key-file"):
            app(words, standalone_mode=False)
        app([*words, "--key-file", str(keys)], standalone_mode=False)
    (gate,) = gates

    async def asked() -> list[int]:
        client = httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://replica")
        async with client:
            ready = await client.get("/api/v1/ready")
            locked = await client.get("/metrics")
            key = {"Authorization": "Bearer a-key-of-a-client"}
            return [
                ready.status_code,
                locked.status_code,
                (await client.get("/metrics", headers=key)).status_code,
            ]

    assert asyncio.run(asked()) == [200, 401, 200]
