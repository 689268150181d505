"""What is to run: the arguments of launch_workers(), checked, and what agents are told of them.

SPDX-License-Identifier: Apache-2.0
"""
import base64
import os
import pickle
import re
import secrets
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._checks import Path, check_kind, check_mapping, path_text
from .._errors import InvalidError
from ._errors import BackendError, ScriptError, SendError

Script = Union[str, "os.PathLike[str]", Callable[..., Any]]
Memory = Union[int, float, str]
UNITS = {"": 1, "k": 10 ** 3, "m": 10 ** 6, "g": 10 ** 9, "t": 10 ** 12,
         "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
MOST = 100_000  #: processes of a job
SECRETS = {"DTRAIN_SECRET", "DTRAIN_SECRET_FILE"}
SERVE = "import dtrain\nwith dtrain.Context() as context:\n    context.serve().wait()\n"
#: Variables of this process that its own job has given it.
OF_THIS_PROCESS = re.compile("DTRAIN_(RANK|SIZE|ROLE|SERVERS|SERVER_INDEX|RENDEZVOUS|LISTEN_FD|LOCAL_RANK|LOCAL_SIZE)$")


@dataclass
class Plan:
    """A job. A worker runs `command`, or calls the function that `function` holds, pickled."""
    workers: int
    servers: int
    command: Optional[List[str]]
    server_command: List[str]
    script: Optional[str] = None  #: the file of the command that must exist
    function: Optional[str] = None  #: base64
    cloudpickle: bool = False
    env: Dict[str, str] = field(default_factory=dict)
    cwd: Optional[str] = None
    path: List[str] = field(default_factory=list)  #: where the function's modules are
    cpu: Optional[float] = None
    memory: Optional[int] = None  #: bytes
    gpus: int = 0
    python: str = sys.executable
    what: str = ""  #: for people
    elastic: bool = False  #: workers may come and go

    @property
    def members(self) -> int:
        return self.workers + self.servers

    def spec(self, **more: Any) -> Dict[str, Any]:
        """What an agent is told; `_agent.py` reads it."""
        return {"workers": self.workers, "members": self.members, "command": self.command,
                "server_command": self.server_command, "script": self.script, "function": self.function,
                "cloudpickle": self.cloudpickle, "env": self.env, "cwd": self.cwd, "path": self.path, **more}

    def identity(self, index: int, local: Tuple[int, int]) -> Dict[str, str]:
        """The variables that say who a process is. local: its rank on its host, and how many there are."""
        told = {"DTRAIN_SIZE": str(self.workers), "DTRAIN_SERVERS": str(self.servers)}
        if index >= self.workers:
            return {**told, "DTRAIN_ROLE": "server", "DTRAIN_SERVER_INDEX": str(index - self.workers)}
        return {**told, "DTRAIN_ROLE": "worker", "DTRAIN_RANK": str(index), "DTRAIN_LOCAL_RANK": str(local[0]),
                "DTRAIN_LOCAL_SIZE": str(local[1])}


def check_count(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: an int is needed, not {type(value).__name__}")
    if not least <= value <= MOST:
        raise InvalidError(f"{name}: {value} is not from {least} to {MOST}")
    return value


def memory_bytes(memory: Optional[Memory]) -> Optional[int]:
    """A number is in GiB; a text has a unit: "512MiB", "2G"."""
    if memory is None:
        return None
    if isinstance(memory, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?", memory.strip().lower())
        if found is None:
            raise InvalidError(f"memory: {memory!r} is not a size such as \"512MiB\" or \"2G\"")
        size = float(found.group(1)) * UNITS[found.group(2) or ""]
    else:
        size = float(memory) * UNITS["gi"]
    if not 1 <= size < 1 << 60:
        raise InvalidError(f"memory: {memory!r} is not a size of a worker's memory (a number is in GiB)")
    return int(size)


def check_env(env: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    check_mapping(env or {}, "env")
    found = {}
    for name, value in (env or {}).items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", check_kind(name, str, "env: a name")):
            raise InvalidError(f"env: {name!r} is not a variable's name")
        found[name] = str(value)
        if "\0" in found[name]:
            raise InvalidError(f"env: {name} has a zero byte")
    return found


def pack(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tuple[str, bool]:
    """The call as text, and whether cloudpickle has made it."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        import cloudpickle  # type: ignore[import-untyped, import-not-found, unused-ignore]
        dumps, by_value = cloudpickle.dumps, True
    except ImportError:
        dumps, by_value = pickle.dumps, False
        if getattr(function, "__module__", None) == "__main__":
            raise SendError(f"function {name} of the main program cannot be sent to workers without the package "
                            "cloudpickle: pip install cloudpickle, or put the function into a module that workers "
                            "can import") from None
    try:
        return base64.b64encode(dumps((function, tuple(args), dict(kwargs)))).decode(), by_value
    except Exception as error:
        advice = "" if by_value else "; with the package cloudpickle more kinds of functions can be sent"
        raise SendError(f"function {name} or its arguments cannot be sent to workers: {error}{advice}") from error


def command_of(script: str, args: Sequence[Any], python: str) -> List[str]:
    """A Python script, or a program."""
    interpreter = [python, "-u"] if script.endswith(".py") else []
    return [*interpreter, script, *(str(arg) for arg in args)]


def make_plan(workers: int, script: Optional[Script], *, code: Optional[str] = None, args: Sequence[Any] = (),
              kwargs: Optional[Mapping[str, Any]] = None, servers: int = 0, cpu: Optional[float] = None,
              memory: Optional[Memory] = None, gpus: int = 0, env: Optional[Mapping[str, Any]] = None,
              cwd: Optional[Path] = None, python: Optional[str] = None,
              server_command: Optional[Sequence[str]] = None) -> Plan:
    """Checks all that can be checked before anything starts."""
    check_count(workers, "n", 1)
    check_count(servers, "servers", 0)
    check_count(gpus, "gpus", 0)
    if isinstance(args, (str, bytes)):
        raise TypeError("args: a list of arguments is needed, not a text")
    if cpu is not None and not 0 < float(cpu) < 1e6:
        raise InvalidError(f"cpu: {cpu!r} is not a number of cores")
    if (script is None) == (code is None):
        raise InvalidError("give a script, a function, or code, and only one of them")
    if kwargs and not callable(script):
        raise InvalidError("kwargs: only a function has keyword arguments")
    python = python or sys.executable
    plan = Plan(workers, servers, None, list(server_command or [python, "-c", SERVE]), cpu=cpu, gpus=gpus,
                memory=memory_bytes(memory), env=make_environment(check_env(env), cpu),
                cwd=None if cwd is None else path_text(cwd, "cwd"), python=python)
    if code is not None:
        plan.command = [python, "-u", "-c", check_kind(code, str, "code"), *map(str, args)]
        plan.what = "code"
    elif callable(script):
        plan.function, plan.cloudpickle = pack(script, args, kwargs or {})
        plan.path = [os.path.abspath(entry) for entry in sys.path]
        plan.what = f"function {getattr(script, '__qualname__', script)}"
    else:
        name = path_text(script, "script_or_function")
        plan.command = command_of(name, args, python)
        plan.script = name if name.endswith(".py") else None
        plan.what = name
    return plan


def make_environment(given: Dict[str, str], cpu: Optional[float]) -> Dict[str, str]:
    """Options of dtrain that this process has hold for the workers, too."""
    options = {name: value for name, value in os.environ.items()
               if name.startswith("DTRAIN_") and not OF_THIS_PROCESS.match(name)}
    threads = {} if cpu is None else {"OMP_NUM_THREADS": str(max(1, int(cpu)))}
    if options.get("DTRAIN_SECRET_FILE", "").startswith("/proc/"):  # dtrain-run's, of another job
        del options["DTRAIN_SECRET_FILE"]
    secret = {} if (given.keys() | options.keys()) & SECRETS else {"DTRAIN_SECRET": secrets.token_hex(32)}
    return {"PYTHONUNBUFFERED": "1", **threads, **options, **secret, **given}


def check_script(plan: Plan) -> None:
    """For workers that see the same files as this process."""
    folder = plan.cwd or os.getcwd()
    if not os.path.isdir(folder):
        raise ScriptError(f"cwd: {folder} is not a folder")
    if plan.script is not None and not os.path.isfile(os.path.join(folder, plan.script)):
        raise ScriptError(f"script {plan.script} does not exist in {folder}; nothing was started")


def refuse_gpus(plan: Plan, backend: str) -> None:
    if plan.gpus:
        raise BackendError(f"gpus: backend \"{backend}\" does not assign GPUs to workers; set CUDA_VISIBLE_DEVICES in "
                           "the worker by DTRAIN_LOCAL_RANK")
