"""Start torchrun on the machines of a Ray cluster.

    ray job submit --address http://HOST:8265 -- \\
        python deploy/ray_torchrun.py --machines 4 --gpus 8 -- train /shared/recipe.yaml
    ... --machines 2:8 --gpus 8 ...        begin with 2 machines, take up to 8 as they come

Every machine has one Ray task, which is torchrun. A task that is lost with its machine starts again where
there is room; then all processes start again from the newest checkpoint. torchrun's store is in this process,
so no machine is needed more than another one. The run must be on a file system that all machines share.
"""

import argparse
import subprocess
import sys

import ray
from torch.distributed import TCPStore

RESTARTS = 20
"""Of a process that fails. Machines that come and go do not count."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Start torchrun on the machines of a Ray cluster.")
    parser.add_argument("--machines", default="1", help="how many, or the least and the most: 2:8")
    parser.add_argument("--gpus", type=int, default=0, help="of each machine; one process for each")
    parser.add_argument(
        "--cpus", type=int, default=1, help="of each machine without GPUs; one process for all"
    )
    parser.add_argument("command", nargs="+", help="-- and the arguments of dragoman: train ..., resume ...")
    options = parser.parse_args()
    ray.init()
    host = ray.util.get_node_ip_address()
    store = TCPStore(host, 0, is_master=True, wait_for_workers=False)
    torchrun = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", options.machines),
        *("--nproc-per-node", str(options.gpus or 1), "--max-restarts", str(RESTARTS)),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{host}:{store.port}", "--rdzv-id", "dragoman"),
        *("--rdzv-conf", "is_host=0,join_timeout=86400,last_call_timeout=10,keep_alive_interval=2"),
        *("-m", "dragoman", *options.command),
    ]
    room = {"num_gpus": options.gpus, "num_cpus": 1} if options.gpus else {"num_cpus": options.cpus}
    task = ray.remote(max_retries=-1, scheduling_strategy="SPREAD", **room)(subprocess.call)
    most = int(options.machines.rpartition(":")[2])
    waiting = [task.remote(torchrun) for _ in range(most)]
    status = 0
    while waiting:
        ended, waiting = ray.wait(waiting)
        status = status or ray.get(ended[0])
        if not status:  # the training has ended: machines that wait for a place have nothing to do
            break
    sys.exit(status)


if __name__ == "__main__":
    main()
