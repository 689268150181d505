"""What engines that run functions (dtrain.ray, dtrain.spark) have in common: who a process is, by variables, and
whom to blame.

SPDX-License-Identifier: Apache-2.0
"""
import difflib
import os
import secrets
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type

from ._context import describe_options, option_text
from ._errors import AbortedError, InvalidError, PeerError
from .launch._errors import LaunchError, WorkerError

IDENTITY = ("RANK", "SIZE", "ROLE", "SERVERS", "SERVER_INDEX", "RENDEZVOUS", "LISTEN_FD", "LOCAL_RANK", "LOCAL_SIZE")


def variables(options: Optional[Mapping[str, Any]], env: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """The variables of all processes: options of dtrain by their names, others, and a secret."""
    defaults = {option.key.replace(".", "_"): option.default for option in describe_options()}
    named = {}
    for key, value in (options or {}).items():
        name = key.replace(".", "_")
        if name not in defaults:
            near = difflib.get_close_matches(name, defaults, 1)
            raise InvalidError(f"options: {key!r} is none of dtrain's" + (f"; the nearest is {near[0]}" if near else ""))
        named[f"DTRAIN_{name.upper()}"] = option_text(value, defaults[name])
    given = {**named, **{key: str(value) for key, value in (env or {}).items()}}
    return given if "DTRAIN_SECRET" in given else {"DTRAIN_SECRET": secrets.token_hex(32), **given}


def identities(hosts: Sequence[str], workers: int, rendezvous: str) -> List[Dict[str, str]]:
    """Who each process is: workers, then servers, of which `hosts` has the place."""
    servers = len(hosts) - workers
    found = []
    for index, host in enumerate(hosts):
        told = {"DTRAIN_RENDEZVOUS": rendezvous, "DTRAIN_SIZE": str(workers), "DTRAIN_SERVERS": str(servers)}
        if index < workers:
            told.update(DTRAIN_ROLE="worker", DTRAIN_RANK=str(index),
                        DTRAIN_LOCAL_RANK=str(hosts[:index].count(host)),
                        DTRAIN_LOCAL_SIZE=str(hosts[:workers].count(host)))
        else:
            told.update(DTRAIN_ROLE="server", DTRAIN_SERVER_INDEX=str(index - workers))
        found.append(told)
    return found


def become(told: Mapping[str, str]) -> None:
    """Makes this process the one that the variables describe."""
    for name in IDENTITY:
        os.environ.pop(f"DTRAIN_{name}", None)
    os.environ.update(told)


@contextmanager
def becoming(told: Mapping[str, str]) -> Iterator[None]:
    """For a while: processes of engines are used again."""
    before = dict(os.environ)
    become(told)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Failure:
    """How a process has failed. lost: it has ended, or cannot be reached."""

    def __init__(self, index: int, text: str, cause: Optional[BaseException] = None, lost: bool = False,
                 traceback: str = "", name: str = "") -> None:
        self.index = index
        self.name = name  #: if not "rank 2"
        self.text = text
        self.cause = cause
        self.lost = lost
        self.traceback = traceback


def blame(engine: str, failures: Sequence[Failure], workers: int,
          kind: Type[LaunchError] = WorkerError) -> LaunchError:
    """The error of the process that failed first; those that only noticed another's failure come last."""
    first = min(failures, key=lambda one: (not one.lost, isinstance(one.cause, (PeerError, AbortedError)), one.index))
    rank = first.index if first.index < workers and not first.name else None
    name = first.name or (f"rank {rank}" if rank is not None else f"server {first.index - workers}")
    others = f"; {len(failures) - 1} more failed" if len(failures) > 1 else ""
    where = f"\n{first.traceback}" if first.traceback else ""
    error = kind(f"{engine}: {name}: {first.text}{others}{where}", rank)
    error.__cause__ = first.cause
    return error
