"""The program of a data service, which runs until the training ends it:
`dtrain-run -np 4 -- python3 -m dtrain.horovod.tensorflow.data.compute_worker /tmp/compute.json`

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
from typing import Optional

import dtrain.horovod.tensorflow as hvd
from dtrain.horovod.common._compute import ComputeService
from dtrain.horovod.tensorflow.data.compute_service import TfDataServiceConfig, compute_worker_fn

__all__ = ["main"]

KEY_BYTES = 32


def main(dispatchers: int, dispatcher_side: str, configfile: str, timeout: int) -> None:
    """Runs in all ranks of a job. Rank 0 writes the configuration for the training to a file. timeout: seconds for the
    dispatchers and workers to find each other."""
    hvd.init()
    if dispatchers <= 0 or hvd.size() % dispatchers:
        raise ValueError(f"Number of processes ({hvd.size()}) must be a multiple of number of dispatchers "
                         f"({dispatchers}).")
    if dispatcher_side not in ("compute", "training"):
        raise ValueError(f'dispatcher_side: {dispatcher_side!r}; "compute" or "training" is needed')
    workers = hvd.size() // dispatchers
    service: Optional[ComputeService] = None
    config: Optional[TfDataServiceConfig] = None
    try:
        if hvd.rank() == 0:
            key = os.urandom(KEY_BYTES)
            service = ComputeService(dispatchers, workers, key)
            config = TfDataServiceConfig(dispatchers, workers, dispatcher_side, service.addresses(), key, timeout)
            config.write(configfile)
        config = hvd.broadcast_object(config, name="TfDataServiceConfig")
        compute_worker_fn(config)
    finally:
        if service is not None:
            service.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="compute_worker", description="A data service of tf.data.")
    parser.add_argument("configfile", help="where its configuration is written for the training")
    parser.add_argument("--dispatchers", type=int, default=1, help="one, or as many as ranks of the training")
    parser.add_argument("--dispatcher-side", choices=("compute", "training"), default="compute",
                        help="which job runs the dispatchers")
    parser.add_argument("--timeout", type=int, default=60, help="seconds to find each other")
    given = parser.parse_args()
    main(given.dispatchers, given.dispatcher_side, given.configfile, given.timeout)
