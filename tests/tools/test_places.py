#!/usr/bin/python3
"""Jobs find each other wherever hosts are: two hosts, which are network namespaces with names of
their own, without IPv4, called by their own loopback, without a way to the rest of the world, with an
address that leads nowhere, with a resolver that is silent, and where ports are taken. Needs root.
usage: test_places.py BIN

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from namespaces import ip, run_on_hosts

TAG = f"dp{os.getpid()}"
HOSTS = [f"{TAG}a", f"{TAG}b"]
FOUR, SIX = ["10.77.0.1", "10.77.0.2"], ["fd00:77::1", "fd00:77::2"]
BENCH = ["--operations", "allreduce", "--sizes", "4,4M", "--iterations", "2"]
STRANGERS = "this job spans 2 hosts without a secret"
BLOCKER = """
import socket, sys, time
held = []
for port in sys.argv[1:]:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("0.0.0.0", int(port)))
    one.listen()
    held.append(one)
print("ready", flush=True)
time.sleep(600)
"""


def make_links():
    for host in HOSTS:
        pathlib.Path("/etc/netns", host).mkdir(parents=True)
    ip("-n", HOSTS[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", HOSTS[1])
    for host in HOSTS:
        ip("-n", host, "link", "set", "eth0", "up")


def readdress(*families):
    """No address but those of these families."""
    for n, host in enumerate(HOSTS):
        ip("-n", host, "address", "flush", "dev", "eth0", "scope", "global")
        for family in families:
            suffix = ["/24"] if family is FOUR else ["/64"]
            nodad = ["nodad"] if family is SIX else []
            ip("-n", host, "address", "add", family[n] + suffix[0], "dev", "eth0", *nodad)


def names(*texts):
    """Each host's /etc/hosts."""
    for host, text in zip(HOSTS, texts):
        pathlib.Path("/etc/netns", host, "hosts").write_text(text + "\n")


def start(bin_folder, host, rank, **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DTRAIN_")}
    environment |= {"DTRAIN_JOIN_TIMEOUT": "40s", "DTRAIN_HEARTBEAT_TIMEOUT": "30s", **variables}
    if "MASTER_PORT" in variables:
        environment |= {"RANK": str(rank), "WORLD_SIZE": "2"}
    else:
        environment |= {"DTRAIN_RANK": str(rank), "DTRAIN_SIZE": "2"}
    return subprocess.Popen(["ip", "netns", "exec", host, f"{bin_folder}/dtrain-bench", *BENCH],
                            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def output(process):
    try:
        return process.communicate(timeout=100)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def finish(what, processes, status=0, texts=(), unwanted=()):
    said = [output(process) for process in processes]
    complaints = [f"{what}: rank {rank} ended with {process.returncode}: {text}"
                  for rank, (process, text) in enumerate(zip(processes, said))
                  if process.returncode != status]
    complaints += [f"{what}: does not say \"{text}\": {said[0]}" for text in texts if text not in said[0]]
    complaints += [f"{what}: says \"{text}\": {said[0]}" for text in unwanted if text in said[0]]
    print(f"{what}: {'; '.join(complaints) or 'fine'}", flush=True)
    return complaints


def check(bin_folder, what, texts=(), unwanted=(), **variables):
    return finish(what, [start(bin_folder, host, rank, **variables) for rank, host in enumerate(HOSTS)],
                  texts=texts, unwanted=unwanted)


def check_names(bin_folder):
    complaints = []
    readdress(SIX)
    names("fd00:77::1 alpha", "fd00:77::1 alpha")
    complaints += check(bin_folder, "IPv6 only", [STRANGERS], DTRAIN_RENDEZVOUS="tcp://alpha:7701")
    complaints += check(bin_folder, "IPv6 only, by number, with a secret", unwanted=[STRANGERS],
                        DTRAIN_RENDEZVOUS="tcp://[fd00:77::1]:7702", DTRAIN_SECRET="word")
    names("::1 localhost alpha", "fd00:77::1 alpha")
    complaints += check(bin_folder, "own name is ::1", DTRAIN_RENDEZVOUS="tcp://alpha:7703")
    readdress(FOUR)
    names("127.0.1.1 alpha", "10.77.0.1 alpha")
    complaints += check(bin_folder, "own name is 127.0.1.1, no default route",
                        DTRAIN_RENDEZVOUS="tcp://alpha:7704")
    readdress(FOUR, SIX)
    names("127.0.1.1 alpha\nfd00:77::1 alpha", "10.77.0.1 alpha")
    complaints += check(bin_folder, "both families, the host's own name is of the other",
                        DTRAIN_RENDEZVOUS="tcp://alpha:7705")
    return complaints


def check_files(bin_folder):
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        for what, families in (("IPv4", [FOUR]), ("IPv6", [SIX]), ("both", [FOUR, SIX])):
            readdress(*families)
            complaints += check(bin_folder, f"a file in a shared folder, {what}",
                                DTRAIN_RENDEZVOUS=f"file://{folder}/{what}")
        # What leads to the rest of the world is first, and swallows what the other host sends there.
        readdress(FOUR)
        for n, host in enumerate(HOSTS, 1):
            ip("-n", host, "link", "add", "hole0", "type", "veth", "peer", "name", "hole0end")
            ip("-n", host, "link", "set", "hole0", "arp", "off")
            ip("-n", host, "link", "set", "hole0end", "up")
            ip("-n", host, "address", "add", f"10.{90 + n}.0.1/24", "dev", "hole0")
            ip("-n", host, "link", "set", "hole0", "up")
            ip("-n", host, "route", "add", "default", "dev", "hole0")
        complaints += check(bin_folder, "the first address leads nowhere",
                            DTRAIN_RENDEZVOUS=f"file://{folder}/hole")
        names("10.91.0.1 alpha\n10.77.0.1 alpha", "10.91.0.1 alpha\n10.77.0.1 alpha")
        complaints += check(bin_folder, "a name whose first address leads nowhere",
                            DTRAIN_RENDEZVOUS="tcp://alpha:7706")
        for host in HOSTS:
            ip("-n", host, "link", "delete", "hole0")
    return complaints


# More patient than a test; nothing that listens there answers.
RESOLVER = "nameserver 127.0.0.1\noptions timeout:30 attempts:3\n"
SILENCE = """
import socket, time
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 53))
print("ready", flush=True)
time.sleep(600)
"""


def check_silent_resolver(bin_folder):
    """Each call ends by its own timeout: making the context, and joining."""
    readdress(FOUR)
    names("", "")
    silence = []
    try:
        for host in HOSTS:
            folder = pathlib.Path("/etc/netns", host)
            folder.joinpath("resolv.conf").write_text(RESOLVER)
            folder.joinpath("nsswitch.conf").write_text("hosts: files dns\n")
            silence.append(subprocess.Popen(["ip", "netns", "exec", host, sys.executable, "-c", SILENCE],
                                            stdout=subprocess.PIPE, text=True))
            silence[-1].stdout.readline()
        begin = time.monotonic()
        ranks = [start(bin_folder, host, rank, DTRAIN_RENDEZVOUS="tcp://nobody.test:7707",
                       DTRAIN_JOIN_TIMEOUT="1s") for rank, host in enumerate(HOSTS)]
        interface = start(bin_folder, HOSTS[0], 0, DTRAIN_RENDEZVOUS="tcp://10.77.0.1:7708",
                          DTRAIN_TRANSPORTS="tcp", DTRAIN_TCP_INTERFACE="nobody.test")
        wanted = ['host "nobody.test"', "the resolver has not answered within 1.", "join.timeout"]
        complaints = [text for rank in ranks
                      for text in finish("a silent resolver", [rank], 1, wanted)]
        complaints += finish("a silent resolver, the interface's name", [interface], 1,
                             ["the resolver has not answered within 10 s; give the interface"])
        if time.monotonic() - begin > 60: # the resolver gives up after 90 s
            complaints.append("a silent resolver: ended late")
    finally:
        for process in silence:
            process.kill()
            process.wait()
        for host in HOSTS:
            for name in ("resolv.conf", "nsswitch.conf"):
                pathlib.Path("/etc/netns", host, name).unlink(missing_ok=True)
    return complaints


def ports_beside(master_port):
    """As lib/cluster/join/rendezvous.cpp has them."""
    return [1024 + (master_port + 2053 * (i + 1)) % (32768 - 1024) for i in range(4)]


def check_ports(bin_folder):
    readdress(FOUR)
    names("127.0.1.1 alpha", "10.77.0.1 alpha")
    first, second, last = 29500, 29501, 29500 + 2053
    ports = ports_beside(first)
    blockers = []

    def block(*numbers):
        blockers.append(subprocess.Popen(
            ["ip", "netns", "exec", HOSTS[0], sys.executable, "-c", BLOCKER, *map(str, numbers)],
            stdout=subprocess.PIPE, text=True))
        blockers[-1].stdout.readline()

    def job(port):
        return [start(bin_folder, host, rank, MASTER_ADDR="alpha", MASTER_PORT=str(port))
                for rank, host in enumerate(HOSTS)]

    try:
        block(first, second, last) # torch's own stores
        jobs = {port: job(port) for port in (first, second)}
        complaints = [text for port, ranks in jobs.items()
                      for text in finish(f"torchrun at {port} and the next", ranks)]
        # Both take the same port, since it is the second of the one and the first of the other.
        block(ports[0])
        jobs = {port: job(port) for port in (first, last)}
        complaints += [text for port, ranks in jobs.items()
                       for text in finish(f"torchrun at {port}, one port is taken", ranks)]
        block(*ports[1:])
        rank = start(bin_folder, HOSTS[0], 0, MASTER_ADDR="alpha", MASTER_PORT=str(first))
        complaints += finish("all ports are taken", [rank], 1,
                             ["MASTER_PORT=29500", f"{ports[0]}, {ports[1]}", "set DTRAIN_RENDEZVOUS"])
    finally:
        for blocker in blockers:
            blocker.kill()
            blocker.wait()
    return complaints


def main(bin_folder):
    def test():
        complaints = (check_names(bin_folder) + check_files(bin_folder) + check_ports(bin_folder) +
                      check_silent_resolver(bin_folder))
        return 1 if complaints else 0
    return run_on_hosts(HOSTS, make_links, test)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
