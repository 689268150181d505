#!/usr/bin/python3
"""Three hosts, which are network namespaces at a switch; the link of one falls silent for a while, or forever, while all
add up. A short silence is no death; after a long one those who are left say so in time, blame the right rank, and go on
without it; the one that was cut off ends, too. Needs root.
usage: test_cut_off.py PROGRAM

SPDX-License-Identifier: Apache-2.0
"""
import os
import random
import subprocess
import sys
import time

from namespaces import ip, run_on_hosts

TAG = f"dt{os.getpid()}"
HOSTS = [f"{TAG}h{i}" for i in range(3)]
SWITCH = f"{TAG}s"
HEARTBEAT_MS = 1500
# Twice as long while the job starts, those who ask whether it lives, and a busy machine.
NOTICED_MS, SLACK_MS = 5 * HEARTBEAT_MS // 2 + 500, 1000
# Who is cut off asks the next coordinator, and then waits for members of its own, for a timeout each.
ISOLATED_MS = NOTICED_MS + 2 * HEARTBEAT_MS


def make_links():
    ip("-n", SWITCH, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
    ip("-n", SWITCH, "link", "set", "br0", "up")
    for i, name in enumerate(HOSTS):
        ip("-n", SWITCH, "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", SWITCH, "link", "set", f"port{i}", "master", "br0", "up")
        ip("-n", name, "address", "add", f"10.79.0.{i + 1}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")


def silence(host, silent):
    """Takes the host's cable out of the switch, and puts it back; the host's own card stays up."""
    ip("-n", SWITCH, "link", "set", f"port{host}", *(["nomaster"] if silent else ["master", "br0"]))


def run_job(program, count, cut, silent_s, seconds, port):
    """What each rank said, in lines."""
    processes = []
    for rank in range(3):
        environment = dict(os.environ, DTRAIN_RENDEZVOUS=f"tcp://10.79.0.1:{port}", DTRAIN_RANK=str(rank),
                           DTRAIN_SIZE="3", DTRAIN_JOIN_TIMEOUT="60s", DTRAIN_HEARTBEAT_TIMEOUT=f"{HEARTBEAT_MS}ms",
                           DTRAIN_HEARTBEAT_INTERVAL="100ms", DTRAIN_LOG_LEVEL="error")
        processes.append(subprocess.Popen(
            ["ip", "netns", "exec", HOSTS[rank], program, str(count), str(seconds)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    try:
        for process in processes:
            line = process.stdout.readline()
            if line != "joined\n":
                sys.exit(f"not joined: {line}")
        time.sleep(random.uniform(0.05, 0.3))
        silence(cut, True)
        if silent_s is not None:
            time.sleep(silent_s)
            silence(cut, False)
        said = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    finally:
        for process in processes:
            process.kill()
        silence(cut, False)
    return said


def check_short(said):
    for rank, lines in enumerate(said):
        if lines[0] != "done":
            sys.exit(f"rank {rank} after a short silence: {lines}")


def check_long(said, cut):
    for rank, lines in enumerate(said):
        words = lines[0].split(" ", 3)
        if words[0] != "failed":
            sys.exit(f"rank {rank}: {lines}")
        if int(words[2]) > (ISOLATED_MS if rank == cut else NOTICED_MS) + SLACK_MS:
            sys.exit(f"rank {rank} noticed after {words[2]} ms: {lines}")
        if rank == cut:
            continue
        if words[1] != "DTRAIN_ERR_PEER" or f"rank {cut}" not in words[3]:
            sys.exit(f"rank {rank} does not blame rank {cut}: {lines}")
        shrunk = lines[1].split()
        if shrunk[:2] != ["shrunk", "2"] or int(shrunk[2]) > NOTICED_MS + SLACK_MS:
            sys.exit(f"rank {rank} did not go on in time: {lines}")
        if lines[2] != "done":
            sys.exit(f"rank {rank}: {lines}")
    end = [line for line in said[cut] if line.startswith("destroyed")]
    if not end or int(end[0].split()[1]) > 1000 + SLACK_MS:
        sys.exit(f"rank {cut}, which was cut off, did not end: {said[cut]}")


def main(program):
    seed = int(os.environ.get("DTRAIN_TEST_SEED", time.time_ns() % 1_000_000))
    rounds = int(os.environ.get("DTRAIN_TEST_ROUNDS", 4))
    print(f"seed {seed} (DTRAIN_TEST_SEED)")
    random.seed(seed)

    def test():
        for i in range(rounds):
            cut = random.randrange(3)
            count = random.choice([64, 20_000, 400_000, 4_000_000, 16_000_000])
            silent_s = [0.5, None, 5, None][i % 4]
            print(f"rank {cut} cut off for {silent_s or 'ever, not'} s, all-reduces of {count} bytes", flush=True)
            said = run_job(program, count, cut, silent_s, 2 if silent_s == 0.5 else 20, 7800 + i)
            if silent_s == 0.5:
                check_short(said)
            else:
                check_long(said, cut)
        return 0
    return run_on_hosts([SWITCH, *HOSTS], make_links, test)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
