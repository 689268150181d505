#!/usr/bin/python3
"""dtrain-run with trivial programs. usage: test_run.py FOLDER_OF_PROGRAMS

SPDX-License-Identifier: Apache-2.0
"""
import os
import pty
import re
import signal
import subprocess
import sys
import time
import unittest

from waiting import LIMIT, wait_for_death

PROGRAMS = sys.argv.pop(1)
RUN = os.path.join(PROGRAMS, "dtrain-run")


def command(ranks, script, *options):
    return [RUN, "-n", str(ranks), *options, "--", "bash", "-c", script]


def run(ranks, script, *options, stdin=subprocess.DEVNULL, **more):
    return subprocess.run(command(ranks, script, *options), stdin=stdin, capture_output=True,
                          text=True, timeout=LIMIT, check=False, **more)


def start(ranks, script, *options):
    return subprocess.Popen(command(ranks, script, *options), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines_by_rank(text):
    ranks = {}
    for line in text.splitlines():
        found = re.fullmatch(r"\[(s?\d+)\] (.*)", line)
        assert found, f"line without rank: {line!r}"
        ranks.setdefault(found[1], []).append(found[2])
    return ranks


class Environment(unittest.TestCase):
    def test_describes_the_job(self):
        result = run(3, 'echo $DTRAIN_ROLE $DTRAIN_RANK $DTRAIN_SIZE $DTRAIN_SERVERS '
                        '$DTRAIN_LOCAL_RANK $DTRAIN_LOCAL_SIZE ${DTRAIN_RENDEZVOUS%:*}')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(lines_by_rank(result.stdout),
                         {str(r): [f"worker {r} 3 0 {r} 3 tcp://127.0.0.1"] for r in range(3)})
        self.assertEqual(result.stderr, "")

    def test_servers(self):
        result = run(2, 'echo worker $DTRAIN_SERVERS', "-s", "2", "--server-program",
                     os.path.join(os.path.dirname(__file__), "fake_server"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(lines_by_rank(result.stdout),
                         {"0": ["worker 2"], "1": ["worker 2"],
                          "s0": ["server 0 of 2, 2 workers, rank none"],
                          "s1": ["server 1 of 2, 2 workers, rank none"]})

    def test_workers_that_serve_too(self):
        result = run(2, 'echo ${DTRAIN_PS_SERVE:-no}', "--mixed")
        self.assertEqual(lines_by_rank(result.stdout), {"0": ["yes"], "1": ["yes"]})

    def test_only_rank_0_inherits_the_listening_socket(self):
        result = run(2, 'echo ${DTRAIN_LISTEN_FD:-none} '
                        '$(readlink /proc/self/fd/${DTRAIN_LISTEN_FD:-none} | cut -d: -f1)')
        by_rank = lines_by_rank(result.stdout)
        self.assertRegex(by_rank["0"][0], r"^\d+ socket$")
        self.assertEqual(by_rank["1"], ["none"])

    def test_secret(self):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("DTRAIN_SECRET")}
        result = run(2, 'cat $DTRAIN_SECRET_FILE; echo " $DTRAIN_SECRET_FILE ${DTRAIN_SECRET:-unset}"',
                     env=clean)
        secrets = [line.split()[0] for (line,) in lines_by_rank(result.stdout).values()]
        self.assertRegex(secrets[0], r"^[0-9a-f]{64}$")
        self.assertEqual(secrets[0], secrets[1])
        _, path, text = lines_by_rank(result.stdout)["0"][0].split()
        self.assertEqual(text, "unset")
        self.assertFalse(os.path.exists(path))
        again = run(1, 'cat $DTRAIN_SECRET_FILE', env=clean)
        self.assertNotIn(secrets[0], again.stdout)
        own = run(1, 'echo ${DTRAIN_SECRET_FILE:-none}', env={**clean, "DTRAIN_SECRET": "mine"})
        self.assertEqual(own.stdout, "[0] none\n")

    def test_input_goes_to_rank_0(self):
        process = subprocess.Popen(command(2, "cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        out, _ = process.communicate("hello\n", timeout=LIMIT)
        self.assertEqual(out, "[0] hello\n")


class Output(unittest.TestCase):
    def test_streams_stay_apart(self):
        result = run(2, 'echo out; echo err >&2')
        self.assertEqual(lines_by_rank(result.stdout), {"0": ["out"], "1": ["out"]})
        self.assertEqual(lines_by_rank(result.stderr), {"0": ["err"], "1": ["err"]})

    def test_lines_are_whole_in_order_and_complete(self):
        result = run(4, 'for i in {1..1500}; do printf "line "; printf "%s of $DTRAIN_RANK\n" $i; done')
        self.assertEqual(lines_by_rank(result.stdout),
                         {str(r): [f"line {i} of {r}" for i in range(1, 1501)] for r in range(4)})

    def test_tail_is_not_lost(self):
        result = run(2, 'head -c 1000000 /dev/zero | tr "\\0" "x" | fold -w 100; printf "\nthe tail"')
        for lines in lines_by_rank(result.stdout).values():
            self.assertEqual(lines[-1], "the tail")
            self.assertEqual(sum(map(len, lines)), 1000000 + len("the tail"))

    def test_long_line_is_broken(self):
        result = run(1, 'head -c 40000 /dev/zero | tr "\\0" "x"; echo')
        lines = lines_by_rank(result.stdout)["0"]
        self.assertEqual("".join(lines), "x" * 40000)
        self.assertEqual(len(lines), 3)

    def test_terminal_bar(self):
        master, slave = pty.openpty()
        with subprocess.Popen(command(2, '''
                if [ $DTRAIN_RANK = 0 ]; then
                    test -t 1 && echo terminal
                    printf "\\r10 %%"; printf "\\r100 %%"; echo
                else test -t 1 || echo pipe; fi'''), stdin=subprocess.DEVNULL, stdout=slave):
            os.close(slave)
            shown = b""
            try:
                while piece := os.read(master, 4096):
                    shown += piece
            except OSError:  # the other side is closed
                pass
        os.close(master)
        final = [line.split("\r")[-1].removeprefix("\x1b[K")
                 for line in shown.decode().replace("\r\n", "\n").split("\n")[:-1]]
        self.assertEqual(sorted(final), ["[0] 100 %", "[0] terminal", "[1] pipe"])


class Failure(unittest.TestCase):
    def test_exit_status_rank_and_last_line(self):
        result = run(3, 'if [ $DTRAIN_RANK = 2 ]; then echo first >&2; echo "no such thing" >&2; '
                        'exit 7; fi; sleep 1000', "--grace", "0.2")
        self.assertEqual(result.returncode, 7)
        self.assertIn("dtrain-run: rank 2 failed: exit status 7; its last line: no such thing\n",
                      result.stderr)
        self.assertEqual(result.stderr.count("failed"), 1)

    def test_signal(self):
        result = run(2, 'if [ $DTRAIN_RANK = 1 ]; then kill -SEGV $$; fi; sleep 1000', "--grace", "0")
        self.assertEqual(result.returncode, 128 + signal.SIGSEGV)
        self.assertIn("dtrain-run: rank 1 failed: killed by signal 11 (Segmentation fault)",
                      result.stderr)

    def test_rank_that_ignores_term_is_killed(self):
        begin = time.monotonic()
        result = run(2, 'trap "" TERM; if [ $DTRAIN_RANK = 1 ]; then read line < <(sleep 0.2); exit 1; fi; '
                        'while true; do sleep 1000 & wait; done', "--grace", "0.2")
        self.assertEqual(result.returncode, 1)
        self.assertIn("dtrain-run: rank 0 did not end in time; killed\n", result.stderr)
        self.assertGreater(time.monotonic() - begin, 1.9)

    def test_others_may_say_what_they_were_told(self):
        result = run(3, 'if [ $DTRAIN_RANK = 1 ]; then exit 7; fi; sleep 0.5; '
                        'echo "rank 1 is lost" >&2; exit 8')
        self.assertEqual(result.returncode, 7)
        self.assertEqual(lines_by_rank("".join(
            line + "\n" for line in result.stderr.splitlines() if line.startswith("["))),
            {"0": ["rank 1 is lost"], "2": ["rank 1 is lost"]})
        for rank, status in ((0, 8), (1, 7), (2, 8)):
            self.assertIn(f"rank {rank} failed: exit status {status}", result.stderr)

    def test_others_are_ended_after_the_grace_time(self):
        begin = time.monotonic()
        result = run(2, 'if [ $DTRAIN_RANK = 1 ]; then exit 7; fi; trap "exit 0" TERM; '
                        'while true; do sleep 1000 & wait; done', "--grace", "0.5")
        self.assertEqual(result.returncode, 7)
        self.assertGreater(time.monotonic() - begin, 0.4)

    def test_others_may_go_on(self):
        result = run(2, 'if [ $DTRAIN_RANK = 1 ]; then exit 7; fi; sleep 1; echo "went on"',
                     "--keep-going", "--grace", "0.1")
        self.assertEqual((result.returncode, result.stdout), (7, "[0] went on\n"))

    def test_servers_end_after_workers_that_failed(self):
        result = run(1, "exit 7", "-s", "1", "--keep-going", "--server-program", "/usr/bin/cat")
        self.assertEqual(result.returncode, 7)

    def test_timeout(self):
        result = run(2, "sleep 1000", "--timeout", "0.2")
        self.assertEqual(result.returncode, 124)
        self.assertIn("timed out after 0.2 s", result.stderr)

    def test_missing_program(self):
        result = subprocess.run([RUN, "-n", "2", "/nowhere/program"], capture_output=True, text=True,
                                timeout=LIMIT, check=False)
        self.assertEqual(result.returncode, 127)
        self.assertIn("cannot run /nowhere/program: No such file or directory", result.stderr)

    def test_missing_server_program(self):
        result = run(2, "echo started", "-s", "1", "--server-program", "/nowhere/server")
        self.assertEqual((result.returncode, result.stdout), (127, ""))

    def test_wrong_usage(self):
        for arguments in ([], ["-n", "2"], ["true"], ["-n", "0", "true"], ["-n", "x", "true"],
                          ["-n", "1", "-s", "-1", "true"], ["-n", "1", "--timeout", "0", "true"],
                          ["-n", "1", "--grace", "-1", "true"],
                          ["--nonsense"]):
            result = subprocess.run([RUN, *arguments], capture_output=True, text=True,
                                    timeout=LIMIT, check=False)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertRegex(result.stderr, "^[^ ]*dtrain-run: ", arguments)


class Signals(unittest.TestCase):
    TRAPS = ('trap "echo got INT; exit 3" INT; trap "echo got TERM; exit 4" TERM; '
             'trap "echo got HUP; exit 5" HUP; echo ready; while true; do sleep 1000 & wait; done')

    def start_ready(self, script, lines=2):
        process = start(2, script)
        ready = [process.stdout.readline() for _ in range(lines)]
        return process, ready

    def test_are_passed_on(self):
        for number, status in ((signal.SIGINT, 3), (signal.SIGTERM, 4), (signal.SIGHUP, 5)):
            process, _ = self.start_ready(self.TRAPS)
            process.send_signal(number)
            out, _ = process.communicate(timeout=LIMIT)
            name = signal.Signals(number).name.removeprefix("SIG")
            self.assertEqual(lines_by_rank(out), {"0": [f"got {name}"], "1": [f"got {name}"]})
            self.assertEqual(process.returncode, status)

    def test_second_interrupt_kills(self):
        process, _ = self.start_ready('trap "echo again" INT; echo ready; '
                                      'while true; do sleep 1000 & wait; done')
        process.send_signal(signal.SIGINT)
        for _ in range(2):
            self.assertIn("again", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)

    def test_killed_launcher_leaves_nobody(self):
        process, ready = self.start_ready('echo $$; while true; do sleep 1000 & wait; done')
        pids = [int(line.split()[1]) for line in ready]
        process.kill()
        process.wait(timeout=LIMIT)
        for pid in pids:
            self.assertTrue(wait_for_death(pid), pid)
        process.stdout.close()
        process.stderr.close()

    def test_what_a_rank_leaves_behind_ends_with_the_job(self):
        process, ready = self.start_ready('sleep 1000 & echo $!')
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0)
        for line in ready:
            self.assertTrue(wait_for_death(int(line.split()[1])))


if __name__ == "__main__":
    unittest.main()
