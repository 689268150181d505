"""A training's access to a data service, and what the service's processes run.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import dataclasses
import json
import os
import tempfile
import time
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from ....tensorflow._tensorflow import tf
from ...common._compute import ComputeClient
from .. import mpi_ops as hvd

__all__ = ["TfDataServiceConfig", "compute_worker_fn", "send_to_data_service", "tf_data_service"]

SERVICE: Any = tf.data.experimental.service
HEARTBEAT_MS = 1000


@dataclasses.dataclass(frozen=True)
class TfDataServiceConfig:
    """How a data service is reached. Who has the key can use and end it, so its file is its owner's alone."""
    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str  #: "compute" or "training": the job that runs the dispatchers
    addresses: Mapping[str, Sequence[Tuple[str, int]]]
    key: bytes
    timeout: int = 60  #: seconds

    def compute_client(self, verbose: int = 1) -> ComputeClient:
        """For shutdown(), by which the training ends the service."""
        return ComputeClient(self.addresses, self.key, verbose)

    def to_dict(self) -> Dict[str, Any]:
        return {**self.__dict__, "key": self.key.hex()}

    @staticmethod
    def from_dict(config: Mapping[str, Any]) -> "TfDataServiceConfig":
        addresses = {name: [(str(host), int(port)) for host, port in listed]
                     for name, listed in config["addresses"].items()}
        return TfDataServiceConfig(int(config["dispatchers"]), int(config["workers_per_dispatcher"]),
                                   str(config["dispatcher_side"]), addresses, bytes.fromhex(config["key"]),
                                   int(config["timeout"]))

    def write(self, filename: str) -> None:
        """The file is there with all its content, or not at all."""
        folder, name = os.path.split(os.path.abspath(filename))
        handle, path = tempfile.mkstemp(prefix=name, dir=folder)  # readable by its owner alone
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file)
        os.rename(path, filename)

    @staticmethod
    def read(filename: str, wait_for_file_creation: bool = False) -> "TfDataServiceConfig":
        """wait_for_file_creation: waits, however long it takes, until the service has written the file."""
        while wait_for_file_creation and not os.path.exists(filename):
            time.sleep(0.2)
        try:
            with open(filename, encoding="utf-8") as file:
                return TfDataServiceConfig.from_dict(json.load(file))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{filename}: no configuration of a data service: {error!r}") from error


def stop(server: Any) -> None:
    server._stop()  # there is no other way
    server.join()


@contextmanager
def dispatcher_here(client: ComputeClient, number: int) -> Iterator[None]:
    """Runs a dispatcher in this process, and registers it where others can reach it: it says localhost of itself."""
    server = SERVICE.DispatchServer()
    try:
        protocol, _, address = server.target.partition("://")
        port = address.rpartition(":")[2]
        client.register_dispatcher(number, f"{protocol}://{in_brackets(client.own_address())}:{port}")
        yield
    finally:
        stop(server)


def in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def tf_data_service(compute_config: TfDataServiceConfig, rank: int) -> Iterator[str]:
    """The address of the dispatcher of this rank of the training, with all its workers, for
    tf.data.experimental.service.distribute(). With dispatchers of the training's side this process runs it meanwhile.
    TimeoutError: it, or a worker, was not there in time."""
    client, several = compute_config.compute_client(), compute_config.dispatchers > 1
    number = rank if several else 0
    with ExitStack() as stack:
        if compute_config.dispatcher_side == "training" and (several or rank == 0):
            stack.enter_context(dispatcher_here(client, number))
        address = client.wait_for_dispatcher_registration(number, compute_config.timeout)
        client.wait_for_dispatcher_worker_registration(number, compute_config.timeout)
        yield address


def send_to_data_service(dataset: Any, compute_config: TfDataServiceConfig, rank: int, size: Optional[int] = None,
                         processing_mode: str = "distributed_epoch", reuse_dataset: bool = False,
                         round_robin: bool = False) -> Any:
    """The dataset, prepared by the data service. It is a method of tf.data.Dataset as well. reuse_dataset: the ranks
    of the training share one run of it, in any order or (round_robin) in turns."""
    if compute_config.dispatcher_side == "training":
        raise RuntimeError("training side dispatcher not supported, use tf_data_service context manager instead")
    in_turns = reuse_dataset and round_robin
    with tf_data_service(compute_config, rank) as address:
        return dataset.apply(SERVICE.distribute(
            processing_mode=processing_mode, service=address, job_name="job" if reuse_dataset else None,
            consumer_index=rank if in_turns else None, num_consumers=size if in_turns else None))


tf.data.Dataset.send_to_data_service = send_to_data_service


def compute_worker_fn(compute_config: TfDataServiceConfig) -> None:
    """Runs in all ranks of a job: a worker in each, and the dispatchers if they are of this side. Returns when the
    training has ended the service."""
    hvd.init()
    client = compute_config.compute_client()
    dispatcher, place = divmod(hvd.rank(), compute_config.workers_per_dispatcher)
    with ExitStack() as stack:
        if compute_config.dispatcher_side == "compute" and place == 0:
            stack.enter_context(dispatcher_here(client, dispatcher))
        address = client.wait_for_dispatcher_registration(dispatcher, compute_config.timeout)
        worker = SERVICE.WorkerServer(SERVICE.WorkerConfig(
            dispatcher_address=address.partition("://")[2], worker_address=in_brackets(client.own_address()) + ":%port%",
            heartbeat_interval_ms=HEARTBEAT_MS, dispatcher_timeout_ms=compute_config.timeout * 1000))
        stack.callback(stop, worker)
        client.register_worker_for_dispatcher(dispatcher, hvd.rank())
        client.wait_for_shutdown()
