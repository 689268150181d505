#!/usr/bin/python3
"""dtrain-run over several hosts, which are names for a shell that stands for ssh (fake_ssh).
usage: test_run_hosts.py FOLDER_OF_PROGRAMS

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from waiting import LIMIT, wait_for_death

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.abspath(sys.argv.pop(1))
RUN = os.path.join(PROGRAMS, "dtrain-run")
SSH = os.path.join(HERE, "fake_ssh")
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("DTRAIN_SECRET")}


def command(hosts, *arguments):
    return [RUN, "--ssh", SSH, "-H", hosts, *arguments]


def run(hosts, *arguments, stdin=subprocess.DEVNULL, **more):
    more.setdefault("env", CLEAN)
    return subprocess.run(command(hosts, *arguments), stdin=stdin, capture_output=True, text=True,
                          timeout=LIMIT, check=False, **more)


def shell(hosts, script, *options, **more):
    return run(hosts, *options, "--", "sh", "-c", script, **more)


def by_rank(text):
    return {line.split("] ", 1)[0][1:]: line.split("] ", 1)[1] for line in text.splitlines()}


def start(hosts, script, *options):
    return subprocess.Popen(command(hosts, *options, "--", "sh", "-c", script), env=CLEAN,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children_of(pid):
    return [int(line) for line in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class CommandLine(unittest.TestCase):
    def check_refused(self, words, *arguments):
        result = subprocess.run([RUN, "--ssh", SSH, *arguments, "--", "true"], capture_output=True,
                                text=True, timeout=LIMIT, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, "^dtrain-run: ")
        self.assertIn(words, result.stderr)

    def test_errors(self):
        self.check_refused('"x" is not a number of slots from 1 to 4096', "-H", "a:x")
        self.check_refused('"0" is not a number of slots', "-H", "a:0")
        self.check_refused('"-oProxyCommand=x" is not a host\'s name', "-H", "-oProxyCommand=x")
        self.check_refused('"a;b" is not a host\'s name', "-H", "a;b")
        self.check_refused('"" is not a host\'s name', "-H", "a,,b")
        self.check_refused("-n 8, but the hosts have 6 slots (a:4, ...); name more of them, or give "
                           "--oversubscribe", "-np", "8", "-H", "a:4,b:2")
        self.check_refused("-p 0: must be a port", "-H", "a", "-p", "0")
        self.check_refused("-x NOT_HERE: this variable is not set here", "-H", "a", "-x", "NOT_HERE")
        self.check_refused('"A-B" is not the name of a variable', "-H", "a", "-x", "A-B=1")
        self.check_refused("No such file", "--hostfile", "/nowhere/hosts")

    def test_hostfile(self):
        with tempfile.NamedTemporaryFile("w") as file:
            def lines(text):
                file.seek(0)
                file.truncate()
                file.write(text)
                file.flush()
            lines("# two hosts\nalpha slots=2  # the first\n\n  beta:1\nalpha\n")
            result = subprocess.run([RUN, "--ssh", SSH, "--hostfile", file.name, "--", "sh", "-c", "echo $ON"],
                                    capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(by_rank(result.stdout), {"0": "alpha", "1": "alpha", "2": "alpha", "3": "beta"})
            lines("alpha\nbeta slots=2 max=3\n")
            self.check_refused(f'hostfile {file.name}, line 2: "max=3" is not understood', "--hostfile", file.name)
            lines("alpha slots=two\n")
            self.check_refused(f'hostfile {file.name}, line 1: "two" is not a number', "--hostfile", file.name)
            lines("# nothing\n")
            self.check_refused("it names no host", "--hostfile", file.name)

    def test_np_as_others_write_it(self):
        result = subprocess.run([RUN, "-np", "2", "echo", "-np"], capture_output=True, text=True, timeout=LIMIT,
                                check=False)
        self.assertEqual(by_rank(result.stdout), {"0": "-np", "1": "-np"})
        result = subprocess.run([RUN, "--num-proc", "2", "echo", "x"], capture_output=True, text=True, timeout=LIMIT,
                                check=False)
        self.assertEqual(by_rank(result.stdout), {"0": "x", "1": "x"})


class Environment(unittest.TestCase):
    def test_describes_the_place(self):
        result = shell("alpha:2,beta", 'echo $ON $DTRAIN_ROLE $DTRAIN_RANK $DTRAIN_SIZE $DTRAIN_LOCAL_RANK '
                       '$DTRAIN_LOCAL_SIZE ${DTRAIN_RENDEZVOUS%:*}')
        self.assertEqual(by_rank(result.stdout), {"0": "alpha worker 0 3 0 2 tcp://127.0.0.1",
                                                  "1": "alpha worker 1 3 1 2 tcp://127.0.0.1",
                                                  "2": "beta worker 2 3 0 1 tcp://127.0.0.1"}, result.stderr)

    def test_more_workers_than_slots(self):
        result = shell("alpha,beta:2", "echo $ON $DTRAIN_LOCAL_RANK/$DTRAIN_LOCAL_SIZE", "-n", "5", "--oversubscribe")
        self.assertEqual(by_rank(result.stdout),
                         {"0": "alpha 0/2", "1": "beta 0/3", "2": "beta 1/3", "3": "alpha 1/2", "4": "beta 2/3"})

    def test_servers_are_spread(self):
        result = shell("alpha,beta", "true", "-s", "3", "--server-program", os.path.join(HERE, "fake_server"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(by_rank(result.stdout)), ["s0", "s1", "s2"])
        where = shell("alpha,beta", "true", "-s", "3", "--server-program", "printenv").stdout
        self.assertEqual([re.search(rf"\[s{i}\] ON=(\w+)", where)[1] for i in range(3)], ["alpha", "beta", "alpha"])

    def test_local_host_needs_no_ssh(self):
        result = shell("localhost,beta", "echo ${ON:-here} ${DTRAIN_RENDEZVOUS%:*}")
        self.assertEqual(by_rank(result.stdout), {"0": "here tcp://127.0.0.1", "1": "beta tcp://127.0.0.1"})

    def test_folder_variables_and_words_stay_as_they_are(self):
        odd = "it's $HOME \"and\"\n`more`"
        with tempfile.TemporaryDirectory(prefix="a folder ") as folder:
            result = run("alpha", "-x", "ODD", "-x", "NEW=1=2", "--", "/usr/bin/python3", "-c",
                         "import os, sys; print(repr([os.getcwd(), os.environ['ODD'], os.environ['NEW'], "
                         "os.environ['DTRAIN_LOG_LEVEL'], 'HOME' in os.environ, sys.argv[1:]]))", odd, "",
                         cwd=folder, env={**CLEAN, "ODD": odd, "DTRAIN_LOG_LEVEL": "info"})
            self.assertEqual(by_rank(result.stdout)["0"],
                             repr([folder, odd, "1=2", "info", False, [odd, ""]]), result.stderr)

    def test_secret_is_in_no_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            result = shell("alpha,beta,localhost", "cat $DTRAIN_SECRET_FILE; echo ${DTRAIN_SECRET:-}", "-p", "2222",
                           "--ssh-identity-file", "/key", env={**CLEAN, "FAKE_SSH_LOG": log})
            secrets = set(by_rank(result.stdout).values())
            self.assertEqual(len(secrets), 1, result.stderr)
            self.assertRegex(secrets.pop(), "^[0-9a-f]{64}$")
            calls = pathlib.Path(log).read_text().splitlines()
            self.assertEqual(len(calls), 2)
            for call in calls:
                self.assertRegex(call, r"-o BatchMode=yes .*-p 2222 -i /key (alpha|beta) exec sh -c ")
                self.assertNotIn("DTRAIN_", call)
                self.assertNotRegex(call, "[0-9a-f]{64}")
            own = shell("alpha,beta", "echo $DTRAIN_SECRET ${DTRAIN_SECRET_FILE:-none}",
                        env={**CLEAN, "DTRAIN_SECRET": "mine"})
            self.assertEqual(by_rank(own.stdout), {"0": "mine none", "1": "mine none"})

    def test_input_goes_to_rank_0(self):
        text = "".join(f"line {i}\n" for i in range(20000))
        process = subprocess.Popen(command("alpha,beta", "wc", "-l"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        out, err = process.communicate(text, timeout=LIMIT)
        self.assertEqual(by_rank(out), {"0": "20000", "1": "0"}, err)

    def test_what_shells_print_is_skipped(self):
        result = shell("chatty", "echo $ON")
        self.assertEqual((result.stdout, result.stderr), ("[0] chatty\n", ""))


class Output(unittest.TestCase):
    def test_lines_are_whole_in_order_and_complete(self):
        script = 'i=0; while [ $i -lt 3000 ]; do echo "line $i of $DTRAIN_RANK"; i=$((i+1)); done; printf "the tail"'
        result = shell("alpha:2,beta", script)
        for rank in range(3):
            lines = [line[4:] for line in result.stdout.splitlines() if line.startswith(f"[{rank}] ")]
            self.assertEqual(lines, [f"line {i} of {rank}" for i in range(3000)] + ["the tail"])

    def test_a_reader_that_waits_stops_nobody(self):
        """Output that nobody reads for longer than --host-timeout; no host is lost by that."""
        process = start("alpha,beta", "head -c 3000000 /dev/zero | tr '\\0' x | fold -w 100; echo; echo done",
                        "--host-timeout", "4")
        time.sleep(7)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(out.count("done"), 2)


class Failure(unittest.TestCase):
    def test_exit_status_rank_host_and_last_line(self):
        result = shell("alpha,beta", 'if [ $DTRAIN_RANK = 1 ]; then echo "no such thing" >&2; exit 7; fi; sleep 1000',
                       "--grace", "0.2")
        self.assertEqual(result.returncode, 7)
        self.assertIn("dtrain-run: rank 1 on host beta failed: exit status 7; its last line: no such thing\n",
                      result.stderr)
        self.assertEqual(result.stderr.count("failed"), 1)

    def test_signal(self):
        result = shell("alpha,beta", "if [ $DTRAIN_RANK = 1 ]; then kill -SEGV $$; fi; sleep 1000", "--grace", "0")
        self.assertEqual(result.returncode, 128 + signal.SIGSEGV)
        self.assertIn("rank 1 on host beta failed: killed by signal 11 (Segmentation fault)", result.stderr)

    def test_no_host(self):
        result = shell("alpha,refused1,refused2", "echo started")
        self.assertEqual((result.returncode, result.stdout), (255, ""))
        for n in (1, 2):
            self.assertIn(f"cannot start processes on host refused{n}: ssh: connect to host refused{n} port 22: "
                          "Connection refused\n", result.stderr)

    def test_host_without_dtrain(self):
        result = shell("bare", "echo started")
        self.assertEqual((result.returncode, result.stdout), (255, ""))
        self.assertIn("on host bare: dtrain-run is neither where it is here nor on the PATH there: ", result.stderr)

    def test_other_version(self):
        result = shell("old", "echo started")
        self.assertEqual((result.returncode, result.stdout), (255, ""))
        self.assertIn("on host old: its dtrain-run is of version 0.0.1, this one of ", result.stderr)

    def test_no_ssh(self):
        result = subprocess.run([RUN, "--ssh", "/nowhere/ssh", "-H", "alpha", "true"], capture_output=True, text=True,
                                timeout=LIMIT, check=False)
        self.assertEqual(result.returncode, 255)
        self.assertIn("on host alpha: cannot run /nowhere/ssh: No such file or directory", result.stderr)

    def test_missing_program(self):
        result = run("alpha,beta", "/nowhere/program")
        self.assertEqual(result.returncode, 127)
        self.assertRegex(result.stderr, "cannot run /nowhere/program on host (alpha|beta): No such file or directory")
        result = shell("alpha,beta", "echo started", "-s", "1", "--server-program", "/nowhere/server")
        self.assertEqual((result.returncode, result.stdout), (127, ""))

    def test_missing_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            gone = os.path.join(folder, "gone")
            os.mkdir(gone)
            result = run("moved", "true", cwd=gone, env={**CLEAN, "FAKE_SSH_FOLDER": gone})
            self.assertEqual(result.returncode, 126, result.stderr)
            self.assertIn(f"cannot run true on host moved: the folder {gone} cannot be entered: No such file or "
                          "directory", result.stderr)

    def test_timeout(self):
        result = shell("alpha,beta", "sleep 1000", "--timeout", "0.5")
        self.assertEqual(result.returncode, 124)
        self.assertIn("timed out after 0.5 s", result.stderr)


class Ends(unittest.TestCase):
    """Nothing is left anywhere, however a job ends."""
    SCRIPT = "echo $$ $PPID; sleep 1000 & wait"  # $PPID: of the agent

    def start_ready(self, *options, script=SCRIPT):
        process = start("alpha,beta", script, *options)
        lines = sorted(process.stdout.readline() for _ in range(2))
        pids = [[int(word) for word in line.split()[1:]] for line in lines]
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process, pids

    def assert_gone(self, pids):
        for pid in pids:
            self.assertTrue(wait_for_death(pid), pid)

    def test_signals_are_passed_on(self):
        for number, status in ((signal.SIGINT, 3), (signal.SIGTERM, 4)):
            process, _ = self.start_ready(script='trap "exit 3" INT; trap "exit 4" TERM; echo 1 1; sleep 1000 & wait')
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=LIMIT), status)

    def test_killed_launcher(self):
        process, pids = self.start_ready()
        process.kill()
        process.wait(timeout=LIMIT)
        self.assert_gone([pid for both in pids for pid in both])

    def test_killed_agent(self):
        process, ((first, first_agent), (second, second_agent)) = self.start_ready("--grace", "0.2")
        os.kill(second_agent, signal.SIGKILL)
        self.assertEqual(process.wait(timeout=LIMIT), 255)
        self.assertRegex(process.stderr.read(), "host beta is lost: .*; with it rank 1\n")
        self.assert_gone([first, first_agent, second])

    def test_silent_host(self):
        process, ((first, first_agent), (second, second_agent)) = self.start_ready("--grace", "0.2",
                                                                                   "--host-timeout", "4")
        os.kill(second_agent, signal.SIGSTOP)
        begin = time.monotonic()
        self.assertEqual(process.wait(timeout=LIMIT), 255)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertIn("host beta is lost: nothing was heard from it for 4 s (--host-timeout); with it rank 1\n",
                      process.stderr.read())
        self.assert_gone([first, first_agent])
        os.kill(second_agent, signal.SIGCONT)
        self.assert_gone([second, second_agent])

    def test_silent_launcher(self):
        """As if the network was cut: neither the launcher nor its heart is heard, and no connection ends."""
        process, pids = self.start_ready("--host-timeout", "4")
        silent = [process.pid, *children_of(process.pid)]
        for pid in silent:
            os.kill(pid, signal.SIGSTOP)
        self.assert_gone([both[0] for both in pids])
        for pid in reversed(silent):  # the launcher last: once it runs, it ends the others
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(process.wait(timeout=LIMIT), 255)
        self.assertIn("is lost: ", process.stderr.read())

    def test_stopped_launcher_is_not_silent(self):
        process, pids = self.start_ready("--host-timeout", "4")
        process.send_signal(signal.SIGSTOP)
        time.sleep(7)
        process.send_signal(signal.SIGCONT)
        time.sleep(1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=LIMIT), 128 + signal.SIGTERM)
        self.assert_gone([pid for both in pids for pid in both])

    def test_what_a_rank_leaves_behind_ends_with_the_job(self):
        process, pids = self.start_ready(script="sleep 1000 & echo $! 0")
        self.assertEqual(process.wait(timeout=LIMIT), 0)
        self.assert_gone([both[0] for both in pids])


class Job(unittest.TestCase):
    def test_trains(self):
        result = run("alpha:2,localhost,beta", "-s", "2", "--timeout", "50", "--", os.path.join(PROGRAMS, "dtrain-bench"),
                     "--operations", "allreduce,push_pull", "--sizes", "4,100K", "--iterations", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("4 ranks", result.stdout)


if __name__ == "__main__":
    unittest.main()
