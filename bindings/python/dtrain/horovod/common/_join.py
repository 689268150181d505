"""join(): this rank has no more data.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Dict

from ..._errors import Error
from ..._request import Request
from ._job import Job
from .exceptions import translated


def join(job: Job) -> int:
    """Returns the rank that joined last. In each process set of this rank it contributes zeros meanwhile, and is named
    in the errors of operations that need it: without that they would wait for it."""
    requests: Dict[int, Request] = {}
    for number, engine in job.engines.items():
        try:
            requests[number] = engine.queue.start.join()
        except Error as error:
            if number == 0:
                raise translated(error, "join") from error
    try:
        last = requests.pop(0).wait().peer
    except Error as error:
        # The others may never join, and a rank that goes on must not contribute zeros.
        for number, request in requests.items():
            if not request.done():
                job.engines[number].comm.abort("join() has failed on this rank")
        raise translated(error, "join") from error
    for request in requests.values():
        try:
            request.wait()
        except Error:
            pass  # of a set that is broken: its next operation says why
    for engine in job.engines.values():
        engine.joined()
    return last
