"""The job that this process is in, unless a program passes communicators itself.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional

from .._communicator import Communicator
from .._context import Context, role
from . import _library

WORLD = "world"  #: the name of the default communicator; saved functions have it, too

_world: Optional[Communicator] = None
_context: Optional[Context] = None


def init(comm: Optional[Communicator] = None, **options: Any) -> Communicator:
    """Sets the communicator that functions use when they are given none, or joins the job that the environment names
    (TF_CONFIG, dtrain-run, torchrun, mpirun, ...; docs/JOINING.md); options are those of dtrain.Context. Without
    init(), the first function that needs the job joins it. May be called again, with the communicator of an elastic
    job's next generation: functions that were traced go on with that one."""
    global _world, _context
    if comm is None:
        if _world is not None and not _world.closed:
            if options:
                raise ValueError("init: the job is joined already, so options come too late")
            return _world
        _context = Context(options)
        comm = _context.world
    elif options:
        raise ValueError("init: options are those of a new context, and comm has one")
    known = _library.registered(_world)
    if known is not None and _world is not comm:
        known.close()
    _world = comm
    _library.name_of(comm, WORLD)
    return comm


def serve(**options: Any) -> bool:
    """For a program that the environment also starts as servers (TF_CONFIG's ps, dtrain-run's own): there, serves until
    all workers have left, and returns True. Returns False at once in workers. options are those of dtrain.Context."""
    if role() != "server":
        return False
    with Context(options) as context:
        context.serve().wait()
    return True


def shutdown() -> None:
    """Leaves the job that init() has joined. A communicator that init() was given stays open."""
    global _world, _context
    known = _library.registered(_world)
    if known is not None:
        known.close()
    if _context is not None:
        _context.close()
    _world = _context = None


def world(comm: Optional[Communicator] = None) -> Communicator:
    """comm, or the default one."""
    if comm is not None:
        return comm
    return init() if _world is None or _world.closed else _world


def initialized() -> bool:
    return _world is not None and not _world.closed


def rank() -> int:
    return world().rank


def size() -> int:
    return world().size
