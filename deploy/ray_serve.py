"""Several replicas of `dragoman serve` on the machines of a Ray cluster.

    pip install '.[serve]' 'ray[serve]'
    serve run --app-dir deploy ray_serve:app replicas=4 serve='/models/en-de --key-file /keys.txt'
    serve run --app-dir deploy ray_serve:app replicas=4 gpus=1 serve='/runs/en-de --key-file /keys.txt'

`serve` has what follows `dragoman serve`. Models and keys are under the same path on every machine. Ray's
proxies listen on port 8000; `/-/healthz` says whether one can be reached, `/api/v1/ready` whether a replica
can answer.
"""

import shlex
from typing import Any

from ray import serve

from dragoman.serve.limits import Limits


def app(given: dict[str, str]) -> Any:
    words = ["serve", "--host", "0.0.0.0", *shlex.split(given["serve"])]
    room = {"num_cpus": float(given.get("cpus", 1)), "num_gpus": float(given.get("gpus", 0))}

    # Both are defined here, so that Ray sends them to machines that do not have this file.
    class Replica:
        """One process with the models, behind Ray's proxies."""

    def gate() -> Any:
        from dragoman.cli.main import app as command
        from dragoman.serve.run import given_to_others

        with given_to_others() as gates:
            command(words, standalone_mode=False)
        return gates[0]

    limits = Limits()
    deployment = serve.deployment(
        num_replicas=int(given.get("replicas", 1)),
        ray_actor_options=room,
        max_ongoing_requests=limits.requests,
        graceful_shutdown_timeout_s=limits.drain_s,
        graceful_shutdown_wait_loop_s=0.5,
    )
    return deployment(serve.ingress(gate)(Replica)).bind()
