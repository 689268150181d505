#!/usr/bin/python3
"""dtrain-run --elastic: workers that fail are replaced, and hosts come and go. "Hosts" are names for a shell that
stands for ssh (fake_ssh). usage: test_run_elastic.py FOLDER_OF_PROGRAMS ELASTIC_WORKER

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from waiting import LIMIT, wait_for_death

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS, WORKER = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
RUN = os.path.join(PROGRAMS, "dtrain-run")
SSH = os.path.join(HERE, "fake_ssh")
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("DTRAIN_")}


def held_by(pid):
    """How many descriptors and child processes (zombies, too) a process has."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return len(os.listdir(f"/proc/{pid}/fd")), len(children)


def read(path):
    try:
        return path.read_text()
    except FileNotFoundError:  # a coordinator that leaves removes its file
        return ""


class Run:
    """A job: what it prints, as it comes."""

    def __init__(self, *arguments, **variables):
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([RUN, "--ssh", SSH, *arguments], env={**CLEAN, **variables},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.readers = [threading.Thread(target=self.read, args=(stream,))
                        for stream in (self.process.stdout, self.process.stderr)]
        for reader in self.readers:
            reader.start()

    def read(self, stream):
        for line in stream:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        stream.close()

    def said(self, pattern):
        """The matches, of whole lines."""
        with self.changed:
            return [found for line in self.lines if (found := re.fullmatch(pattern, line))]

    def wait_for(self, pattern, times=1):
        """The last of so many matches."""
        end = time.monotonic() + LIMIT
        with self.changed:
            while len(found := [m for line in self.lines if (m := re.fullmatch(pattern, line))]) < times:
                if not self.changed.wait(end - time.monotonic()):
                    raise AssertionError(f"not said {times} times within {LIMIT} s: {pattern}\n" + self.text())
        return found[-1]

    def text(self):
        return "\n".join(self.lines)

    def pid(self, worker):
        return int(self.wait_for(rf"\[{worker}\] pid (\d+)")[1])

    def kill(self, worker):
        pid = self.pid(worker)
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait(self):
        status = self.process.wait(timeout=LIMIT)
        for reader in self.readers:
            reader.join(LIMIT)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()

    def run_job(self, *arguments, **variables):
        """Options, then perhaps a program; else the elastic worker."""
        program = () if "--" in arguments else ("--", WORKER, str(self.folder))
        job = Run(*arguments, *program, TMPDIR=str(self.temporary), **variables)
        self.addCleanup(job.close)
        return job

    def touch(self, name):
        self.folder.joinpath(name).touch()

    def finish(self, job, status=0):
        self.touch("stop")
        self.assertEqual(job.wait(), status, job.text())

    def wait_until_all_hosts_know(self, hosts):
        """That the job has formed, from the files where the generations meet."""
        end = time.monotonic() + LIMIT
        while [place.read_text()[-3:] for place in self.temporary.glob("*/rendezvous")] != [" 1\n"] * hosts:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def assert_holds(self, pid, held):
        """What a worker's end leaves to be read and reaped may come after what its successor has said."""
        end = time.monotonic() + LIMIT
        while (now := held_by(pid)) != held:
            self.assertLess(time.monotonic(), end, f"{now} instead of {held}")
            time.sleep(0.02)

    def assert_no_folder_is_left(self):
        end = time.monotonic() + LIMIT
        while left := os.listdir(self.temporary):
            self.assertLess(time.monotonic(), end, left)
            time.sleep(0.05)


class CommandLine(Case):
    def test_errors(self):
        for words, arguments in (
                ("--elastic 4: must be MIN:MAX, two numbers from 1 to 4096", ["--elastic", "4"]),
                ("--elastic 0:2: must be MIN:MAX", ["--elastic", "0:2"]),
                ("--elastic -1:2: must be MIN:MAX", ["--elastic", "-1:2"]),
                ("--elastic 1:: must be MIN:MAX", ["--elastic", "1:"]),
                ("--elastic 1:2x: must be MIN:MAX", ["--elastic", "1:2x"]),
                ("--elastic 1:4097: must be MIN:MAX, two numbers from 1 to 4096", ["--elastic", "1:4097"]),
                ("--elastic 3:2: MIN is larger than MAX", ["--elastic", "3:2"]),
                ("-n 1: --elastic 2:4 allows 2 to 4", ["--elastic", "2:4", "-n", "1"]),
                ("-n 5: --elastic 2:4 allows 2 to 4", ["--elastic", "2:4", "-n", "5"]),
                ("-n 4, but the hosts have 3 slots", ["--elastic", "2:4", "-n", "4", "-H", "a:3"]),
                ("--elastic 4:8, but the hosts have 3 slots", ["--elastic", "4:8", "-H", "a,b:2"]),
                ("--keep-going: ", ["--elastic", "1:2", "--keep-going"]),
                ("--oversubscribe: ", ["--elastic", "1:2", "-H", "a", "--oversubscribe"]),
                ("--address: ", ["--elastic", "1:2", "-H", "a", "--address", "a"]),
                ("--discovery: only an elastic job (--elastic MIN:MAX) has it", ["-n", "1", "--discovery", "x"]),
                ("--discovery: only an elastic job (--elastic MIN:MAX) has it",
                 ["-n", "1", "--host-discovery-script", "x"]),
                ("--discovery-interval: only an elastic job", ["-n", "1", "--discovery-interval", "1"]),
                ("--elastic-timeout: only an elastic job", ["-n", "1", "--elastic-timeout", "1"]),
                ("--discovery-interval: there is no --discovery", ["--elastic", "1:2", "--discovery-interval", "1"]),
                ("--discovery: the hosts come from it or from -H", ["--elastic", "1:2", "-H", "a", "--discovery", "x"]),
                ("--discovery /nowhere/script: No such file or directory",
                 ["--elastic", "1:2", "--discovery", "/nowhere/script"])):
            with self.subTest(words):
                job = self.run_job(*arguments, "--", "true")
                self.assertEqual(job.wait(), 2, job.text())
                self.assertTrue(job.text().startswith("dtrain-run: " + words), job.text())

    def test_variables(self):
        job = self.run_job("--elastic", "2:3", "--mixed", "--", "sh", "-c",
                           'echo $DTRAIN_ELASTIC $DTRAIN_ELASTIC_MIN $DTRAIN_ELASTIC_MAX $DTRAIN_RANK/$DTRAIN_SIZE '
                           '$DTRAIN_LOCAL_RANK/$DTRAIN_LOCAL_SIZE $DTRAIN_PS_SERVE $DTRAIN_LISTEN_ADDRESS '
                           '${DTRAIN_RENDEZVOUS%-*}')
        self.assertEqual(job.wait(), 0, job.text())
        self.assertEqual(sorted(job.lines), [
            f"[{i}] yes 2 3 {i}/3 {i}/3 yes 127.0.0.1 file://{self.temporary}/dtrain-run" for i in range(3)])
        self.assert_no_folder_is_left()


class OneHost(Case):
    def check_replacement(self, victim, *options):
        job = self.run_job("--elastic", "1:3", *options)
        job.wait_for(r"\[\d\] rank \d of 3, step 0", 3)
        job.kill(victim)
        job.wait_for(r"\[3\] rank 2 of 3, step above 0")
        self.finish(job)
        job.wait_for(rf"dtrain-run: worker {victim} failed: killed by signal 9 \(Killed\).*")
        job.wait_for("dtrain-run: the job has ended well; 1 worker failed, of which 1 was replaced")
        self.assertFalse(job.said(rf"\[{victim}\] rank . of ., step above 0"))
        self.assert_no_folder_is_left()

    def test_a_killed_worker_is_replaced(self):
        self.check_replacement(1)

    def test_rank_0_is_replaced(self):
        self.check_replacement(0)

    def test_servers_follow(self):
        self.check_replacement(0, "-s", "1")

    def test_one_after_the_other(self):
        """Ranks 0 of several generations; the numbers count on, and the launcher keeps nothing of those that ended."""
        job = self.run_job("--elastic", "2:2")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        held = held_by(job.process.pid)
        for n in range(3):
            job.kill(n)
            job.wait_for(rf"\[{n + 2}\] rank 1 of 2, step above 0")
        self.assert_holds(job.process.pid, held)
        self.finish(job)
        job.wait_for("dtrain-run: the job has ended well; 3 workers failed, of which 3 were replaced")

    def test_free_slots_are_filled(self):
        job = self.run_job("--elastic", "1:3", "-n", "1")
        job.wait_for(r"\[0\] rank 0 of 1, step 0")
        job.wait_for(r"\[\d\] rank \d of 3, step above 0", 3)
        self.finish(job)
        self.assertFalse(job.said("dtrain-run: .*"))

    def test_what_a_worker_leaves_behind_ends_with_it(self):
        job = self.run_job("--elastic", "1:2", "--", "sh", "-c",
                           f"sleep 1000 & echo child $!; exec {WORKER} {self.folder}")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        left = int(job.wait_for(r"\[1\] child (\d+)")[1])
        job.kill(1)
        self.assertTrue(wait_for_death(left))
        job.wait_for(r"\[2\] rank 1 of 2, step above 0")
        self.finish(job)

    def test_the_exit_status_of_an_agreed_failure(self):
        job = self.run_job("--elastic", "1:2")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.touch("fail")
        self.assertEqual(job.wait(), 4, job.text())
        job.wait_for("dtrain-run: the job ends: all workers that knew its state have failed.*")

    def test_all_are_lost(self):
        """Nobody knows the state any more: newcomers do not wait for ever."""
        job = self.run_job("--elastic", "1:2")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        pids = [job.pid(0), job.pid(1)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(job.wait(), 137, job.text())
        job.wait_for("dtrain-run: the job ends: all workers that knew its state have failed.*")
        self.assert_no_folder_is_left()

    def test_newcomers_that_wait_are_sent_away_at_the_end(self):
        """The job ends while a newcomer is not taken in: its end is no failure."""
        script = f'if [ $DTRAIN_RANK = new ]; then echo waits; exec sleep 1000; fi; exec {WORKER} {self.folder}'
        job = self.run_job("--elastic", "1:2", "--", "sh", "-c", script)
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        job.kill(1)
        job.wait_for(r"\[2\] waits")
        self.finish(job)

    def test_newcomers_that_nobody_took_in_are_no_failure(self):
        self.touch("deaf")
        job = self.run_job("--elastic", "1:2", "-n", "1")
        job.wait_for(r"\[0\] rank 0 of 1, step 0")
        job.wait_for(r"\[1\] pid \d+")
        time.sleep(0.5)  # so that it waits for the others, most of the time: it ends well in either case
        self.finish(job)
        self.assertFalse(job.said(r"\[1\] rank.*"), job.text())

    def test_a_newcomer_that_is_too_late_does_not_wait(self):
        """It was started before the last generation formed, without it; the launcher cannot know that."""
        script = (f'if [ $DTRAIN_RANK = new ] && mkdir {self.folder}/slow; then '
                  f'while [ ! -e {self.folder}/go ]; do sleep 0.05; done; fi; exec {WORKER} {self.folder}')
        job = self.run_job("--elastic", "1:3", "--", "sh", "-c", script)
        job.wait_for(r"\[\d\] rank \d of 3, step 0", 3)
        job.kill(1)
        job.kill(2)
        job.wait_for(r"\[[34]\] rank 1 of 2, step above 0")
        folders = list(self.temporary.iterdir())
        self.assertEqual(len(folders), 1)
        self.touch("stop")
        end = time.monotonic() + LIMIT
        while read(folders[0] / "rendezvous") != "dtrain-rendezvous over\n":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.touch("go")
        self.assertEqual(job.wait(), 1, job.text())
        job.wait_for(r"\[[34]\] join: joining the job: the job is over, as rendezvous file .* \(DTRAIN_ERR_ABORTED\)")

    def test_a_job_that_has_not_formed_starts_again(self):
        script = (f'[ $DTRAIN_RANK = 1 ] && [ ! -e {self.folder}/second ] && touch {self.folder}/second && exit 5; '
                  f'exec {WORKER} {self.folder}')
        job = self.run_job("--elastic", "1:2", "--", "sh", "-c", script)
        job.wait_for("dtrain-run: worker 1 failed: exit status 5")
        job.wait_for("dtrain-run: the job had not formed yet; it starts again")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.finish(job)

    def test_crash_loop(self):
        self.touch("crash")
        job = self.run_job("--elastic", "1:2")
        self.assertEqual(job.wait(), 3, job.text())
        job.wait_for("dtrain-run: host localhost is left out from now on: 5 failures in a row, each soon after a start")
        job.wait_for(r"dtrain-run: the job ends: fewer workers run than --elastic allows \(0 of 1\), and no host can "
                     "take one")
        again = len(job.said("dtrain-run: the job had not formed yet; it starts again"))
        self.assertIn(again, (4, 5))  # 5: it was decided before the second worker's end was seen

    def test_newcomers_that_crash_end_nobody(self):
        job = self.run_job("--elastic", "1:2")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.touch("crash")
        job.kill(1)
        job.wait_for("dtrain-run: host localhost is left out from now on: .*")
        job.wait_for(r"\[0\] rank 0 of 1, step above 0")
        self.finish(job)

    def test_a_missing_program_ends_the_job(self):
        job = self.run_job("--elastic", "1:2", "--", "/nowhere/program")
        self.assertEqual(job.wait(), 127, job.text())
        self.assertEqual(len(job.said("dtrain-run: cannot run /nowhere/program: No such file or directory")), 1)

    def test_a_failed_server_ends_the_job(self):
        server = self.folder / "server"
        server.write_text(f"#!/bin/sh\n{PROGRAMS}/dtrain-server &\n"
                          f"while [ ! -e {self.folder}/fall ]; do sleep 0.1; done\nkill -9 $!; exit 7\n")
        server.chmod(0o700)
        job = self.run_job("--elastic", "1:2", "-s", "1", "--grace", "0.5", "--server-program", str(server))
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.touch("fall")
        self.assertEqual(job.wait(), 7, job.text())
        job.wait_for("dtrain-run: server 0 failed: exit status 7.*")

    def test_timeout(self):
        job = self.run_job("--elastic", "1:2", "--timeout", "2")
        self.assertEqual(job.wait(), 124, job.text())

    def test_signals_are_passed_on(self):
        job = self.run_job("--elastic", "1:2", "--", "sh", "-c", 'trap "exit 3" INT; echo ready; sleep 1000 & wait')
        job.wait_for(r"\[\d\] ready", 2)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.wait(), 3, job.text())
        self.assertFalse(job.said(r".*failed.*"))

    def test_killed_launcher_leaves_nothing(self):
        job = self.run_job("--elastic", "1:2")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        job.process.kill()
        for worker in (0, 1):
            self.assertTrue(wait_for_death(job.pid(worker)))
        self.assert_no_folder_is_left()


class Hosts(Case):
    def test_one_after_the_other(self):
        job = self.run_job("--elastic", "2:2", "-H", "alpha:2", "--", "sh", "-c",
                           f"echo agent $PPID; exec {WORKER} {self.folder}")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.wait_until_all_hosts_know(2)
        agent = int(job.wait_for(r"\[0\] agent (\d+)")[1])
        held = held_by(agent)
        for n in range(3):
            job.kill(n)
            job.wait_for(rf"\[{n + 2}\] rank 1 of 2, step above 0")
        self.assert_holds(agent, held)
        self.finish(job)

    def test_a_lost_host(self):
        """The host of rank 0 ends with all that is on it; another host's slots stay as they are."""
        job = self.run_job("--elastic", "1:3", "-H", "alpha,beta:2", "--", "sh", "-c",
                           f"echo agent $PPID; exec {WORKER} {self.folder}")
        job.wait_for(r"\[\d\] rank \d of 3, step 0", 3)
        self.wait_until_all_hosts_know(3)
        os.kill(int(job.wait_for(r"\[0\] agent (\d+)")[1]), signal.SIGKILL)
        job.wait_for("dtrain-run: host alpha is lost: .*; with it worker 0")
        job.wait_for(r"\[3\] rank 2 of 3, step above 0")  # alpha is there again
        self.finish(job)
        self.assert_no_folder_is_left()

    def test_a_host_that_crashes_workers_is_left_out(self):
        self.touch("crash-beta")
        job = self.run_job("--elastic", "1:2", "-H", "alpha,beta")
        job.wait_for("dtrain-run: host beta is left out from now on: 5 failures in a row, each soon after a start")
        job.wait_for(r"\[0\] rank 0 of 1, step 0")
        self.finish(job)

    def test_a_host_that_cannot_be_reached(self):
        job = self.run_job("--elastic", "1:2", "-H", "alpha,refused")
        job.wait_for("dtrain-run: cannot start processes on host refused: ssh: connect to .*", 5)
        job.wait_for("dtrain-run: host refused is left out from now on: .*")
        job.wait_for(r"\[0\] rank 0 of 1, step 0")
        self.finish(job)

    def test_no_host_can_be_reached(self):
        job = self.run_job("--elastic", "1:2", "-H", "refused")
        self.assertEqual(job.wait(), 255, job.text())
        job.wait_for("dtrain-run: the job ends: fewer workers run than --elastic allows .*, and no host can take one")

    def test_killed_launcher_leaves_nothing(self):
        job = self.run_job("--elastic", "1:2", "-H", "alpha,beta")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        job.process.kill()
        for worker in (0, 1):
            self.assertTrue(wait_for_death(job.pid(worker)))
        self.assert_no_folder_is_left()


class Discovery(Case):
    def discover(self, text, name="hosts"):
        """The script prints this from now on."""
        fresh = self.folder / "fresh"
        fresh.write_text(text)
        fresh.rename(self.folder / name)

    def run_discovery(self, *arguments, script="cat {folder}/hosts"):
        path = self.folder / "script"
        path.write_text("#!/bin/sh\n" + script.format(folder=self.folder) + "\n")
        path.chmod(0o700)
        return self.run_job("--discovery", str(path), "--discovery-interval", "0.2", *arguments)

    def test_grows_and_shrinks(self):
        self.discover("alpha:1\n")
        job = self.run_discovery("--elastic", "1:4")
        job.wait_for(r"\[0\] rank 0 of 1, step 0")
        self.discover("# two more\nalpha slots=1\nbeta slots=2\n")
        job.wait_for(r"\[\d\] rank \d of 3, step above 0", 3)
        self.discover("alpha slots=2\nbeta slots=2\n")
        job.wait_for(r"\[\d\] rank \d of 4, step above 0", 4)
        self.discover("beta:1\n")  # without rank 0's host, and with fewer slots
        job.wait_for(r"\[[12]\] rank 0 of 1, step above 0")
        left = job.said("dtrain-run: worker . on host .* leaves: its slot is not in the list any more")
        self.assertEqual(len(left), 3)
        self.finish(job)
        self.assertFalse(job.said("dtrain-run: .*failed.*"))
        self.assert_no_folder_is_left()

    def test_workers_that_do_not_leave_are_killed(self):
        self.discover("alpha:2\n")
        job = self.run_discovery("--elastic", "1:2", "--grace", "0.5", "--", "sh", "-c",
                                 f'trap "" TERM; exec {WORKER} {self.folder}')
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.discover("alpha:1\n")
        job.wait_for("dtrain-run: worker 1 on host alpha did not end in time; killed")
        job.wait_for(r"\[0\] rank 0 of 1, step above 0")
        self.finish(job)

    def test_a_host_comes_back(self):
        self.discover("alpha\nbeta\n")
        job = self.run_discovery("--elastic", "1:2")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.discover("alpha\n")
        job.wait_for(r"\[0\] rank 0 of 1, step above 0")
        self.discover("alpha\nbeta\n")
        job.wait_for(r"\[2\] rank 1 of 2, step above 0")
        self.finish(job)

    def test_waits_for_hosts_at_the_start(self):
        self.discover("")
        job = self.run_discovery("--elastic", "2:2")
        job.wait_for("dtrain-run: waiting for hosts: there are 0 slots, and the job needs 2")
        self.discover("alpha\n")
        job.wait_for("dtrain-run: waiting for hosts: there is 1 slot, and the job needs 2")
        self.discover("alpha\nbeta\n")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.finish(job)

    def test_too_few_hosts_for_too_long(self):
        self.discover("alpha\n")
        job = self.run_discovery("--elastic", "2:2", "--elastic-timeout", "1")
        self.assertEqual(job.wait(), 124, job.text())
        job.wait_for(r"dtrain-run: the job ends: fewer workers run than --elastic allows \(0 of 2\), for 1 s "
                     r"\(--elastic-timeout\)")

    def test_too_few_workers_for_too_long(self):
        self.discover("alpha:2\n")
        job = self.run_discovery("--elastic", "2:2", "--elastic-timeout", "8")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.discover("alpha:1\n")
        self.assertEqual(job.wait(), 124, job.text())
        job.wait_for(r"dtrain-run: the job ends: .*\(1 of 2\), for 8 s \(--elastic-timeout\)")

    def test_a_script_that_fails_at_the_start(self):
        for words, status, script in ((": exit status 9: no idea", 9, "echo no idea >&2; exit 9"),
                                      (r": killed by signal 6 \(Aborted\)", 134, "kill -6 $$"),
                                      (r', line 2: "b=1" is not understood \(.*', 1, "echo a; echo a b=1")):
            with self.subTest(words):
                job = self.run_discovery("--elastic", "1:2", script=script)
                self.assertEqual(job.wait(), status, job.text())
                job.wait_for(rf"dtrain-run: the job ends: --discovery {self.folder}/script{words}")

    def test_a_script_that_cannot_be_run(self):
        path = self.folder / "script"
        path.write_text("#!/nowhere/shell\n")
        path.chmod(0o700)
        for script, status in ((str(path), 127), ("no-such-program-of-dtrain", 127)):
            job = self.run_job("--discovery", script, "--elastic", "1:2")
            self.assertEqual(job.wait(), status, job.text())
            job.wait_for(f"dtrain-run: the job ends: --discovery {script}: it cannot be run: No such file or directory")

    def test_a_script_that_fails_later(self):
        """Each failure is told once, and the last list stays."""
        self.discover("alpha:2\n")
        job = self.run_discovery("--elastic", "1:2", script="if [ -e {folder}/broken ]; then . {folder}/broken; fi; "
                                                            "cat {folder}/hosts; echo >>{folder}/runs")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        for words, script in ((": exit status 9", "exit 9"), (r', line 1: "!" is not a host\'s name', "echo '!'"),
                              (": it names no host", "exit 0")):
            self.discover(script, "broken")
            job.wait_for(rf"dtrain-run: --discovery.*{words}; the last list stays")
        (self.folder / "broken").unlink()
        before = (self.folder / "runs").stat().st_size
        while (self.folder / "runs").stat().st_size < before + 3:
            time.sleep(0.05)
        self.assertEqual(len(job.said("dtrain-run: .*the last list stays")), 3)
        self.finish(job)
        self.assertFalse(job.said("dtrain-run: .*leaves.*"))

    def test_a_script_that_hangs(self):
        """It is killed after 30 s; the job goes on meanwhile."""
        self.discover("alpha:2\n")
        job = self.run_discovery("--elastic", "1:2", script="if [ -e {folder}/broken ]; then . {folder}/broken; fi; "
                                                            "cat {folder}/hosts")
        job.wait_for(r"\[\d\] rank \d of 2, step 0", 2)
        self.discover("echo $$ >{folder}/hangs.new; mv {folder}/hangs.new {folder}/hangs; sleep 1000 & wait".format(
            folder=self.folder), "broken")
        while not (self.folder / "hangs").exists():
            time.sleep(0.05)
        script = int((self.folder / "hangs").read_text())
        self.wait_until_all_hosts_know(2)
        job.kill(1)
        job.wait_for(r"\[2\] rank 1 of 2, step above 0")
        job.wait_for("dtrain-run: --discovery .*: it has not ended within 30 s; killed; the last list stays")
        self.assertTrue(wait_for_death(script))
        self.finish(job)


if __name__ == "__main__":
    unittest.main()
