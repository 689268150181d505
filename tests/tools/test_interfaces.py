#!/usr/bin/python3
"""Interfaces that do not lead to the other host: a job over two hosts, which are network namespaces,
says which it tried and what to do, or goes on without them. Needs root.
usage: test_interfaces.py BIN PLUGINS

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys
import threading
import time

from namespaces import ip, run_on_hosts

TAG = f"di{os.getpid()}"
HOSTS = [f"{TAG}a", f"{TAG}b"]
# Cards of each host besides eth0, by which they reach each other: the address on host {n}.
CARDS = {"docker0": "172.17.0.1/16", # on both hosts
         "lost0": "10.99.{n}.1/24", # there is no way from one to the other
         "hole0": "10.98.0.{n}/24"} # what is sent to the other is swallowed
LEFT_OUT = "rail 1 is left out on all ranks"
# (transport's options, exit status, what rank 0 says of it)
TCP = [({"DTRAIN_TCP_INTERFACE": "docker0"}, 1, ["listens at 172.17.0.1", "of this host, too"]),
       ({"DTRAIN_TCP_INTERFACE": "lost0"}, 1, ["from 10.99.1.1 (lost0) to 10.99.2.1, to which the "
                                               "kernel has no route", "option tcp.interface"]),
       ({"DTRAIN_TCP_INTERFACE": "hole0"}, 1, ["from 10.98.0.1 (hole0) to 10.98.0.2, packets leave "
                                               "by 10.98.0.1 (hole0)", "option tcp.interface"]),
       ({"DTRAIN_TCP_INTERFACE": "eth0,lost0"}, 0, [LEFT_OUT, "from 10.99.1.1 (lost0)"]),
       ({"DTRAIN_TCP_INTERFACE": "eth0,hole0"}, 0, [LEFT_OUT, "from 10.98.0.1 (hole0)"]),
       ({"DTRAIN_TCP_INTERFACE": "eth0,eth0"}, 0, [])]
OFI = [({"DTRAIN_OFI_DOMAIN": "hole0"}, 1, ["from card hole0 to card hole0: from 10.98.0.1 (hole0) "
                                            "to 10.98.0.2", "option ofi.domain"]),
       ({"DTRAIN_OFI_DOMAIN": "eth0"}, 0, []),
       ({"DTRAIN_OFI_DOMAIN": "eth0,hole0"}, 0, [LEFT_OUT, "from card hole0 to card hole0"])]


def make_links():
    ip("-n", HOSTS[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
       HOSTS[1])
    for n, host in enumerate(HOSTS, 1):
        for card in CARDS: # the other end stays on this host and answers nothing
            ip("-n", host, "link", "add", card, "type", "veth", "peer", "name", f"{card}end")
            ip("-n", host, "link", "set", f"{card}end", "up")
        for card, address in {"eth0": "10.97.0.{n}/24", **CARDS}.items():
            ip("-n", host, "address", "add", address.format(n=n), "dev", card)
            ip("-n", host, "link", "set", card, "up")
    for host in HOSTS:
        while "state UP" not in subprocess.run(["ip", "-n", host, "link", "show", "eth0"], check=True,
                                               capture_output=True, text=True).stdout:
            time.sleep(0.02)


def run_job(bin_folder, port, options):
    """[(exit status, what it said)] by rank, one on each host."""
    ranks = []
    for rank, host in enumerate(HOSTS):
        environment = dict(os.environ, DTRAIN_RENDEZVOUS=f"tcp://10.97.0.1:{port}",
                           DTRAIN_RANK=str(rank), DTRAIN_SIZE="2", DTRAIN_JOIN_TIMEOUT="60s",
                           DTRAIN_SECRET="word",
                           DTRAIN_HEARTBEAT_TIMEOUT="30s", **options)
        ranks.append(subprocess.Popen(
            ["ip", "netns", "exec", host, f"{bin_folder}/dtrain-bench", "--operations", "allreduce",
             "--sizes", "4,4M", "--iterations", "3"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    said = [rank.communicate(timeout=100)[0] for rank in ranks]
    return [(rank.returncode, text) for rank, text in zip(ranks, said)]


def check(bin_folder, port, case, complaints):
    options, wanted, texts = case
    results = run_job(bin_folder, port, options)
    if any(status != wanted for status, _ in results):
        complaints.append(f"{options}: not status {wanted}: {results}")
    complaints += [f"{options}: does not say \"{text}\": {results[0][1]}"
                   for text in texts if text not in results[0][1]]
    if not texts and "warning" in results[0][1]:
        complaints.append(f"{options}: warns: {results[0][1]}")


def main(bin_folder, plugins):
    cases = list(TCP)
    if pathlib.Path(plugins, "libdtrain_transport_ofi.so").exists():
        network = {"DTRAIN_TRANSPORTS": "ofi", "DTRAIN_OFI_PROVIDER": "net",
                   "DTRAIN_PLUGIN_PATH": plugins}
        cases += [({**network, **options}, *rest) for options, *rest in OFI]
    complaints = []

    def test():
        # They wait most of the time.
        threads = [threading.Thread(target=check, args=(bin_folder, 7700 + i, case, complaints))
                   for i, case in enumerate(cases)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("\n".join(complaints) or f"{len(cases)} choices of interfaces")
        return 1 if complaints else 0
    return run_on_hosts(HOSTS, make_links, test)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
