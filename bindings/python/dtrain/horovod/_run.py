"""horovod.run(): a job from within a program, by dtrain.launch.

SPDX-License-Identifier: Apache-2.0
"""
import os
import socket
import subprocess
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ..launch import run_cluster
from ..launch._hosts import Host, parse_hosts

HERE = ("localhost", "127.0.0.1", "::1")
PATIENCE = 30.0  #: seconds for the discovery script
MOST = 1024  #: workers of an elastic job, if nothing says how many
#: Horovod's arguments that have no counterpart.
UNUSED = ("slots", "reset_limit", "cooldown_range", "disable_cache", "verbose", "use_gloo", "use_mpi", "mpi_args")
RENAMED = {"np": "num_proc", "min_np": "min_num_proc", "max_np": "max_num_proc"}


def run(func: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None,
        num_proc: int = 1, min_num_proc: Optional[int] = None, max_num_proc: Optional[int] = None,
        hosts: Optional[str] = None, hostfile: Optional[str] = None, host_discovery_script: Optional[str] = None,
        start_timeout: Optional[float] = None, ssh_port: Optional[int] = None, ssh_identity_file: Optional[str] = None,
        output_filename: Optional[str] = None, network_interfaces: Optional[Sequence[str]] = None,
        executable: Optional[str] = None, **others: Any) -> List[Any]:
    """See dtrain.horovod.run()."""
    given = named(others)
    count: int = given.get("num_proc", num_proc)
    least: Optional[int] = given.get("min_num_proc", min_num_proc)
    most: Optional[int] = given.get("max_num_proc", max_num_proc)
    if sum(one is not None for one in (hosts, hostfile, host_discovery_script)) > 1:
        raise ValueError("run: give one of hosts, hostfile and host_discovery_script")
    settings: Dict[str, Any] = {"args": args, "kwargs": kwargs, "python": executable, "logs": output_filename,
                                "env": variables(start_timeout, given.get("network_interfaces", network_interfaces))}
    found = hosts_of(hosts, hostfile, host_discovery_script)
    if found and not all(is_here(host.name) for host in found):
        settings.update(backend="ssh", port=ssh_port, identity=ssh_identity_file)
        if host_discovery_script is None:
            settings["hosts"] = {host.name: host.slots for host in found}
    if host_discovery_script is not None or least is not None or most is not None:
        settings.update(elastic_of(count, least, most, host_discovery_script))
    return run_cluster(count, 0, func, **settings)


def named(others: Mapping[str, Any]) -> Dict[str, Any]:
    """Arguments under the names that Horovod has replaced."""
    found: Dict[str, Any] = {}
    for name, value in others.items():
        if name in RENAMED:
            if value is not None:
                warnings.warn(f"{name} is deprecated, use {RENAMED[name]} instead", DeprecationWarning, stacklevel=3)
                found[RENAMED[name]] = value
        elif name == "network_interface":
            if value is not None:
                found["network_interfaces"] = value.split(",")
        elif name not in UNUSED:
            raise TypeError(f"run: there is no argument {name!r}")
    return found


def variables(start_timeout: Optional[float], interfaces: Optional[Sequence[str]]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    if start_timeout is not None:
        found["DTRAIN_JOIN_TIMEOUT"] = f"{start_timeout}s"
    if interfaces:
        found["DTRAIN_TCP_INTERFACE"] = ",".join(interfaces)
    return found


def hosts_of(hosts: Optional[str], hostfile: Optional[str], script: Optional[str]) -> List[Host]:
    if script is not None:
        return parse_hosts(discover(script))
    if hostfile is not None:
        with open(hostfile, encoding="utf-8") as file:
            return parse_hosts([line for line in (line.partition("#")[0].strip() for line in file) if line])
    return [] if hosts is None else parse_hosts(hosts)


def discover(script: str) -> str:
    """What the script prints: a host a line."""
    return subprocess.run([os.path.abspath(script)], stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
                          check=True).stdout


def elastic_of(count: int, least: Optional[int], most: Optional[int], script: Optional[str]) -> Dict[str, Any]:
    least = count if least is None else least
    limits: Tuple[int, int] = (least, most if most is not None else max(count, MOST if script is not None else least))
    found: Dict[str, Any] = {"elastic": limits}
    if script is not None:
        found["discovery"] = lambda: discover(script)
    return found


def is_here(name: str) -> bool:
    return name in HERE or name == socket.gethostname()
