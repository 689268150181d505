#!/usr/bin/python3
"""Runs a command in a small emulated machine that has an RDMA device, soft-RoCE (docs/RDMA.md). The
machine's root is this host's, read-only; the repository it may write to. Environment and working
folder are the caller's. Ends with the command's status, 124 after the time limit, 125 when a
machine broke, and 77, saying why, where there can be none.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import pathlib
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import kernel

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = REPOSITORY / "build/rdma"
EMULATOR = "qemu-system-x86_64"
NEEDED = {EMULATOR: "qemu-system-x86", "busybox": "busybox-static", "modprobe": "kmod",
          "cpio": "cpio", "rdma": "iproute2"} # programs and their packages
TIMED_OUT, BROKEN, SKIPPED = 124, 125, 77 # exit statuses
MEMORY = 2048 # MiB, of all machines together
OWN_NETWORK = "DTRAIN_RDMA_NETWORK" # set in the process whose network has the bridge


def check_host():
    if platform.machine() != "x86_64":
        raise kernel.Unavailable("the machine runs this host's programs, and is an x86-64 one")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = {package for program, package in NEEDED.items()
               if not shutil.which(program, path=path)}
    if missing:
        raise kernel.Unavailable(f"as root, run: apt-get install {' '.join(sorted(missing))}")


def job(command):
    """The shell script that a machine runs."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in os.environ.items()
             if name.isidentifier()]
    lines += ["PATH=$PATH:/usr/sbin:/sbin", f"cd {shlex.quote(os.getcwd())} || exit",
              f"exec {shlex.join(command)}"]
    return "\n".join(lines) + "\n"


def share(tag, folder, options=""):
    path = str(folder).replace(",", ",,")
    return ["-fsdev", f"local,id={tag},path={path},security_model=none{options}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def emulator(system, run, machine, machines, cards):
    """The command that emulates one machine; ttyS0 is its console, ttyS1 what the job says."""
    kernel_file, first_root = system
    command = ["setpriv", "--pdeathsig", "KILL", # it does not outlive this process
               EMULATOR, "-M", "q35", "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max",
               "-smp", str(max(1, 2 // machines)), "-m", str(MEMORY // machines),
               "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
               "-monitor", "none",
               "-serial", f"file:{run}/console.{machine}", "-serial", "stdio",
               "-kernel", str(kernel_file), "-initrd", str(first_root),
               "-append", "console=ttyS0 loglevel=4 panic=-1 mitigations=off nokaslr tsc=reliable "
               "clocksource=tsc no_timer_check random.trust_cpu=on audit=0 apparmor=0 "
               f"machine={machine} cards={cards}",
               *share("root", "/", ",readonly=on,multidevs=remap"),
               *share("repository", REPOSITORY), *share("run", run)]
    for card in range(cards) if machines > 1 else []:
        command += ["-netdev", f"tap,id=net{card},ifname={tap(machine, card)},script=no,"
                    "downscript=no", "-device", f"virtio-net-pci,netdev=net{card},"
                    f"mac=52:54:00:00:{card:02x}:{machine + 1:02x},"
                    "host_mtu=4200,csum=off,gso=off,guest_csum=off,mrg_rxbuf=on"]
    return command


def tap(machine, card):
    return f"tap{machine}.{card}"


def make_bridges(machines, cards):
    """Joins the taps of all machines, card by card, in a network of this process's own that ends
    with it."""
    def ip(*arguments):
        kernel.output("ip", *arguments)
    for card in range(cards):
        bridge = f"bridge{card}"
        ip("link", "add", bridge, "type", "bridge")
        for machine in range(machines):
            ip("tuntap", "add", "dev", tap(machine, card), "mode", "tap")
            ip("link", "set", tap(machine, card), "mtu", "4200", "master", bridge, "up")
        ip("link", "set", bridge, "mtu", "4200", "up")


def enter_own_network():
    """Goes on in a network namespace; without root, as root of a user namespace."""
    if OWN_NETWORK in os.environ:
        del os.environ[OWN_NETWORK]
        return
    unshare = ["unshare", "--net"] + (["--map-root-user"] if os.geteuid() != 0 else [])
    kernel.output(*unshare, "true")
    os.environ[OWN_NETWORK] = "1"
    os.execvp(unshare[0], unshare + [sys.executable, *sys.argv])


def status_of(run, machine):
    try:
        return int((run / f"status.{machine}").read_text())
    except (OSError, ValueError):
        return None


class Machine(threading.Thread):
    """One emulated machine, and the thread that passes on what it says."""

    def __init__(self, command, prefix, ended):
        super().__init__(daemon=True)
        self.prefix, self.ended = prefix, ended
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace")

    def run(self):
        for line in self.process.stdout:
            sys.stdout.write(self.prefix + line)
            sys.stdout.flush()
        self.process.wait()
        self.ended()


def emulate(system, run, machines, cards, limit):
    """Runs all machines to their end; returns whether that was the time limit, and their statuses,
    None for one that has not said any."""
    def stop():
        for machine in all_machines:
            machine.process.kill()

    def check(i):
        if status_of(run, i) is None: # the others would wait for it
            stop()

    all_machines = []
    for i in range(machines):
        all_machines.append(Machine(emulator(system, run, i, machines, cards),
                                    f"[{i}] " if machines > 1 else "", lambda i=i: check(i)))
    watch = threading.Timer(limit, stop)
    watch.daemon = True
    for thread in [watch, *all_machines]:
        thread.start()
    for machine in all_machines:
        machine.join()
    expired = not watch.is_alive()
    watch.cancel()
    return expired, [status_of(run, i) for i in range(machines)]


def run(system, command, machines, cards, limit):
    with tempfile.TemporaryDirectory(prefix="dtrain-rdma-") as folder:
        path = pathlib.Path(folder)
        (path / "job").write_text(job(command))
        (path / "repository").write_text(str(REPOSITORY))
        (path / "machines").write_text(str(machines))
        expired, statuses = emulate(system, path, machines, cards, limit)
        for i, status in enumerate(statuses):
            if status is None:
                console = (path / f"console.{i}").read_text(errors="replace").splitlines()[-50:]
                print("\n".join(["vm.py: last lines of the console:", *console]), file=sys.stderr)
    if expired:
        print(f"vm.py: stopped after the time limit of {limit} s (--limit)", file=sys.stderr)
        return TIMED_OUT
    if None in statuses:
        print("vm.py: the machine broke", file=sys.stderr)
        return BROKEN
    status = next((status for status in statuses if status != 0), 0)
    if status > 128:
        print(f"vm.py: the command was killed by signal {status - 128}", file=sys.stderr)
    return status


def main():
    parser = argparse.ArgumentParser(
        usage="vm.py [--two] [--cards NUMBER] [--limit SECONDS] [--] COMMAND [ARGUMENT ...]", description=__doc__)
    parser.add_argument("--two", action="store_true", help="on two machines that a bridge joins; "
                        "RDMA_MACHINE tells them apart, and for dtrain they are ranks 0 and 1")
    parser.add_argument("--cards", type=int, default=1, help="network cards of each machine, each "
                        "with an RDMA device and in a network of its own; default %(default)s")
    parser.add_argument("--limit", type=float, default=120, help="seconds, default %(default)s")
    parser.add_argument("--prepare", action="store_true", help="only fetch the kernel")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[options.command[:1] == ["--"]:]
    if not command and not options.prepare:
        parser.error("no command")
    machines = 2 if options.two else 1
    try:
        check_host()
        system = kernel.prepare(CACHE)
        if options.two:
            enter_own_network()
            make_bridges(machines, options.cards)
    except kernel.Unavailable as error:
        print(f"skipped: no emulated machine with RDMA here: {error}")
        return SKIPPED
    try:
        return run(system, command, machines, options.cards, options.limit) if command else 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
