#!/usr/bin/python3
"""Instructions of a small all-reduce, a request to a table, and a message inside a host or over the network libraries,
counted by callgrind. Nobody waits in the calls that are counted: what the other rank does for them it
has done before, in the same thread. So the numbers are the same each time, and on a busy machine.
usage: test_instructions.py FOLDER_OF_PROGRAMS FOLDER_OF_PLUGINS SMALL_CALLS

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAMS, PLUGINS, SMALL_CALLS = (sys.argv.pop(1) for _ in range(3))
CALLS = 2000
SLACK = 1.05  # compilers and libraries differ a little


def count(function, what, launcher=(), options=None):
    """Instructions per call of one rank, by function."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*launcher, "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/%p",
                   f"--toggle-collect={function}", SMALL_CALLS, str(CALLS), what]
        # Under valgrind a process is slow to answer.
        environment = dict(os.environ, DTRAIN_HEARTBEAT_TIMEOUT="600s", DTRAIN_PLUGIN_PATH=PLUGINS)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                              env=environment | (options or {}))
        assert done.returncode == 0, done.stdout + done.stderr
        profile = sorted(pathlib.Path(folder).iterdir())[0]
        listing = subprocess.run(["callgrind_annotate", "--threshold=100", str(profile)],
                                 capture_output=True, text=True, check=True).stdout
    costs = {}
    for line in listing.splitlines():
        found = re.match(r"\s*([\d,]+) \([ \d.]+%\)  \S+?:(.+)", line)
        if found:
            costs[found[2]] = costs.get(found[2], 0) + int(found[1].replace(",", ""))
    return {name: n / CALLS for name, n in costs.items() if n >= CALLS}


def most_costly(costs):
    worst = sorted(costs.items(), key=lambda item: -item[1])[:12]
    return "the most costly functions:\n" + "\n".join(f"{n:8.0f}  {name[:100]}" for name, n in worst)


class Instructions(unittest.TestCase):
    def compare(self, seen, costs, what):
        per_call, limit = sum(costs.values()), seen * SLACK
        print(f"{per_call:.0f} instructions {what} (seen: {seen}, at most {limit:.0f})")
        self.assertGreater(per_call, 200, "nothing was counted; " + most_costly(costs))
        self.assertLess(per_call, limit, most_costly(costs))

    def check(self, seen, function, what):
        costs = count(function, what)
        self.assertNotIn("Idle::pass", "".join(costs), "it waits; " + most_costly(costs))
        self.compare(seen, costs, f"per call, {what}")

    def test_the_same_call_again(self):
        self.check(1312, "counted_allreduce", "same")

    def test_another_buffer_each_time(self):
        self.check(1906, "counted_allreduce", "varied")

    def test_sending_a_message(self):
        self.check(1678, "counted_send", "messages")

    def test_pushing_a_value(self):
        self.check(5307, "counted_push", "pushes")

    def test_pulling_a_value(self):
        self.check(5248, "counted_pull", "pulls")

    def test_a_blocking_call_over_a_network_allocates_nothing(self):
        costs = count("counted_allreduce", "apart", [f"{PROGRAMS}/dtrain-run", "-n", "2", "--"],
                      {"DTRAIN_TRANSPORTS": "tcp"})
        self.assertIn("ScheduleRun::issue", "".join(costs), "this is not the way meant; " + most_costly(costs))
        # What the first call sets up is a few instructions per call; an allocation in each is twenty and more.
        memory = {name: n for name, n in costs.items() if n > 10 and ("malloc" in name or "operator new" in name)}
        self.assertEqual(memory, {})

    # What the network library and libc take besides is theirs: printed, not limited.
    def check_over(self, seen, transport, options):
        if not pathlib.Path(PLUGINS, f"libdtrain_transport_{transport}.so").exists():
            self.skipTest(f"there is no transport {transport} in this build")
        costs = count("counted_send", "messages", options=options | {"DTRAIN_TRANSPORTS": transport})
        own = {name: n for name, n in costs.items() if "/libdtrain" in name.rpartition("[")[2]}
        self.compare(seen, own, f"of {sum(costs.values()):.0f} per message over {transport}")

    def test_sending_over_libfabric(self):
        self.check_over(770, "ofi", {"DTRAIN_OFI_PROVIDER": "shm"})

    def test_sending_over_ucx(self):
        self.check_over(1107, "ucx", {"DTRAIN_UCX_TLS": "tcp"})


if __name__ == "__main__":
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        sys.exit(77)
    unittest.main()
