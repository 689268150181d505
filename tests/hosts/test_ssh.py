#!/usr/bin/python3
"""dtrain-run over two hosts, which are network namespaces at a switch, each with an sshd; the launcher
is on a third one, or on one of the two. Needs root, iproute2, openssh-server and openssh-client.
usage: test_ssh.py BIN ELASTIC_WORKER

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SSHD = "/usr/sbin/sshd"
PORT = 2222  # of namespaces of our own
TAG = f"dr{os.getpid()}"
SWITCH = f"{TAG}s"
HOSTS = {"launcher": "10.81.0.1", "a": "10.81.0.2", "b": "10.81.0.3"}
LIMIT = 300  # seconds
BENCH = ["--operations", "allreduce,push_pull", "--sizes", "4,1M", "--iterations", "3"]
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("DTRAIN_", "SSH_"))}
bin_folder = worker = ""


def missing():
    """What this test needs and the machine lacks; "" if nothing."""
    lacks = [name for name in ("ip", "ssh", "ssh-keygen", SSHD) if shutil.which(name) is None]
    if lacks:
        return f"{', '.join(lacks)} not installed"
    return "" if os.geteuid() == 0 else "network namespaces need root"


def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def space(host):
    return f"{TAG}{host}"


def make_hosts():
    ip("netns", "add", SWITCH)
    ip("-n", SWITCH, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
    ip("-n", SWITCH, "link", "set", "br0", "up")
    names = "127.0.0.1 localhost\n" + "".join(f"{address} {host}\n" for host, address in HOSTS.items())
    for host, address in HOSTS.items():
        name = space(host)
        ip("netns", "add", name)
        folder = pathlib.Path("/etc/netns", name)
        folder.mkdir(parents=True)
        folder.joinpath("hosts").write_text(names)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", SWITCH, "link", "add", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", SWITCH, "link", "set", f"to-{host}", "master", "br0", "up")
        ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")


def remove_hosts():
    for name in [SWITCH, *map(space, HOSTS)]:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)


def connect(host, connected):
    """Puts the host's cable into the switch, or takes it out; its own card stays up."""
    ip("-n", SWITCH, "link", "set", f"to-{host}", *(["master", "br0"] if connected else ["nomaster"]))


def make_keys(folder):
    for name in ("host", "user", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    folder.joinpath("allowed").write_text(folder.joinpath("user.pub").read_text())
    key = " ".join(folder.joinpath("host.pub").read_text().split()[:2])
    folder.joinpath("known").write_text("".join(f"[{host}]:{PORT},[{address}]:{PORT} {key}\n"
                                                for host, address in HOSTS.items()))
    folder.joinpath("ssh_config").write_text(
        f"UserKnownHostsFile {folder}/known\nGlobalKnownHostsFile /dev/null\nIdentitiesOnly yes\n")
    folder.joinpath("sshd_config").write_text(
        f"Port {PORT}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/allowed\nStrictModes no\nUsePAM no\n"
        "PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
        f"PrintMotd no\nSetEnv TMPDIR={folder}\n")  # there is what a host leaves whose processes are all killed


def start_sshd(host, folder):
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    log = open(folder / f"sshd-{host}.log", "w")  # pylint: disable=consider-using-with
    with log:
        daemon = subprocess.Popen(["ip", "netns", "exec", space(host), SSHD, "-D", "-e", "-f",
                                   folder / "sshd_config"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    end = time.monotonic() + 20
    while "Server listening" not in folder.joinpath(f"sshd-{host}.log").read_text():
        if daemon.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"sshd: {folder.joinpath(f'sshd-{host}.log').read_text()}")
        time.sleep(0.05)
    return daemon


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if missing():
            raise unittest.SkipTest(missing())
        cls.daemons = {}
        cls.addClassCleanup(remove_hosts)
        try:
            make_hosts()
        except (subprocess.CalledProcessError, OSError) as error:
            raise unittest.SkipTest(f"no network namespaces here: {getattr(error, 'stderr', error)}") from error
        folder = tempfile.TemporaryDirectory(prefix="dtrain-ssh-")  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        make_keys(cls.folder)
        for host in ("a", "b"):
            cls.daemons[host] = start_sshd(host, cls.folder)
            cls.addClassCleanup(cls.daemons[host].wait)
            cls.addClassCleanup(cls.daemons[host].kill)

    def start(self, *arguments, at="launcher", key="user", port=PORT, **variables):
        command = ["ip", "netns", "exec", space(at), f"{bin_folder}/dtrain-run",
                   "--ssh", f"ssh -F {self.folder}/ssh_config", "--ssh-identity-file", str(self.folder / key),
                   "-p", str(port), "--timeout", "90", *arguments]
        return subprocess.Popen(command, env={**CLEAN, **variables}, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run_job(self, *arguments, **more):
        """(exit status, what it said)"""
        process = self.start(*arguments, **more)
        said = process.communicate(timeout=LIMIT)[0]
        return process.returncode, said

    def assert_nothing_left(self, seconds=20):
        """Only the two daemons run on the hosts, within this time."""
        end = time.monotonic() + seconds
        while True:
            left = {host: [int(pid) for pid in ip("netns", "pids", space(host)).split()
                           if int(pid) != daemon.pid] for host, daemon in self.daemons.items()}
            if not any(left.values()):
                return
            if time.monotonic() > end:
                self.fail("left: " + str([pathlib.Path(f"/proc/{pid}/cmdline").read_text()
                                          for pids in left.values() for pid in pids]))
            time.sleep(0.1)

    def test_two_hosts(self):
        status, said = self.run_job("-H", "a:2,b:2", "-s", "2", f"{bin_folder}/dtrain-bench", *BENCH)
        self.assertEqual(status, 0, said)
        self.assertIn("4 ranks", said)
        self.assertNotIn("without a secret", said)
        self.assert_nothing_left()

    def test_launcher_on_one_of_them(self):
        status, said = self.run_job("-H", "a,b:2", f"{bin_folder}/dtrain-bench", *BENCH, at="a")
        self.assertEqual(status, 0, said)
        self.assertIn("3 ranks", said)
        status, said = self.run_job("-H", "b,a", f"{bin_folder}/dtrain-bench", *BENCH, at="a")
        self.assertEqual(status, 0, said)

    def test_addresses(self):
        status, said = self.run_job("-H", "root@10.81.0.3:1,a", "--address", "10.81.0.3", "sh", "-c",
                                    "echo ${DTRAIN_RENDEZVOUS%:*}; cat /etc/netns/x 2>/dev/null; true")
        self.assertEqual((status, sorted(said.splitlines())),
                         (0, ["[0] tcp://10.81.0.3", "[1] tcp://10.81.0.3"]))

    def test_no_way(self):
        for words, arguments, more in (
                ("on host a: ssh: connect to host a port 2223: Connection refused", ["-H", "a"], {"port": 2223}),
                ("on host nobody: ssh: Could not resolve hostname nobody", ["-H", "a,nobody"], {}),
                ("on host a: root@a: Permission denied (publickey)", ["-H", "a,b"], {"key": "other"}),
                ("on host launcher: ssh: connect to host launcher port 2222: Connection refused",
                 ["-H", "launcher"], {"at": "a"})):
            with self.subTest(words):
                status, said = self.run_job(*arguments, "echo", "started", **more)
                self.assertEqual(status, 255, said)
                self.assertIn(words, said)
                self.assertNotIn("] started", said)
        self.assert_nothing_left()

    def test_stranger_in_the_place_of_a_host(self):
        known = self.folder / "known"
        text = known.read_text()
        try:
            known.write_text("")
            status, said = self.run_job("-H", "a", "echo", "started")
            self.assertEqual(status, 255, said)
            self.assertIn("on host a: Host key verification failed.", said)
        finally:
            known.write_text(text)

    def test_killed_launcher(self):
        process = self.start("-H", "a:2,b:2", "-s", "1", "--", "sh", "-c", "echo ready; sleep 1000 & wait")
        for _ in range(4):
            self.assertIn("ready", process.stdout.readline())
        process.kill()  # "ip netns exec" has become it
        process.wait(timeout=LIMIT)
        process.stdout.close()
        self.assert_nothing_left()

    def test_killed_rank(self):
        status, said = self.run_job("-H", "a,b", "--grace", "1", "--", "sh", "-c",
                                    "test $DTRAIN_RANK = 0 || kill -9 $$; sleep 1000")
        self.assertEqual(status, 137, said)
        self.assertIn("rank 1 on host b failed: killed by signal 9 (Killed)", said)
        self.assert_nothing_left()

    def test_cut_link(self):
        """A host that is cut off is named, in bounded time; what runs there ends, too, by itself."""
        process = self.start("-H", "a,b", "--host-timeout", "4", "--grace", "3", f"{bin_folder}/dtrain-bench",
                             "--operations", "allreduce", "--sizes", "1M", "--iterations", "100000",
                             DTRAIN_HEARTBEAT_TIMEOUT="2s", DTRAIN_LOG_LEVEL="info")
        try:
            time.sleep(3)  # it runs
            self.assertIsNone(process.poll())
            connect("b", False)
            begin = time.monotonic()
            said = process.communicate(timeout=LIMIT)[0]
            self.assertLess(time.monotonic() - begin, 40, said)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn("host b is lost: nothing was heard from it for 4 s (--host-timeout); with it rank 1", said)
            self.assertRegex(said, r"\[0\] .*rank 1")
            self.assert_processes_end("b")
        finally:
            process.kill()
            connect("b", True)
        self.daemons_are_left_alone()

    def lose_rank_0s_host(self, cut):
        """An elastic job of four on a and b; the host of rank 0 is lost: its network, or all processes on it. After
        a cut, only the larger side may go on."""
        there = 1 if cut else 2
        left = 4 - there
        with tempfile.TemporaryDirectory() as folder:
            process = self.start("--elastic", "1:4", "-H", f"a:{there},b:{left}", "--host-timeout", "4", worker, folder,
                                 DTRAIN_HEARTBEAT_TIMEOUT="2s", DTRAIN_OP_TIMEOUT="60s")
            said = ""

            def read_until(*words):
                nonlocal said
                seen = ""
                while not all(word in seen for word in words):
                    line = process.stdout.readline()
                    self.assertTrue(line, said)
                    seen += line
                    said += line
            try:
                read_until(*(f"[{rank}] rank {rank} of 4, step 0" for rank in range(4)))
                if cut:
                    connect("a", False)
                else:
                    for pid in ip("netns", "pids", space("a")).split():
                        with contextlib.suppress(ProcessLookupError):  # it ends with another one
                            os.kill(int(pid), 9)
                # Newcomers find the job on b, whose rendezvous it has become.
                read_until("host a is lost: ",
                           *(f"[{there + i}] rank {i} of {left}, step above 0" for i in range(left)))
                os.kill(int(said.split(f"[{there}] pid ")[1].split()[0]), 9)
                read_until(f"[3] rank {left - 2} of {left}, step above 0", f"] rank {left - 1} of {left}, step above 0")
                pathlib.Path(folder, "stop").touch()
                said += process.communicate(timeout=LIMIT)[0]
                self.assertEqual(process.returncode, 0, said)
                self.assertIn(f"the job has ended well; {there + 1} workers failed, of which", said)
            finally:
                process.kill()
                process.stdout.close()
        return said

    def test_elastic_job_loses_the_processes_of_rank_0s_host(self):
        try:
            self.lose_rank_0s_host(cut=False)
        finally:
            self.daemons["a"].kill()  # if the test has failed before
            self.daemons["a"].wait()
            self.daemons["a"] = start_sshd("a", self.folder)
            self.addClassCleanup(self.daemons["a"].wait)
            self.addClassCleanup(self.daemons["a"].kill)
        self.assert_nothing_left()

    def test_elastic_job_loses_the_network_of_rank_0s_host(self):
        try:
            self.lose_rank_0s_host(cut=True)
            self.assert_processes_end("a")
        finally:
            connect("a", True)
        self.daemons_are_left_alone("a")

    def test_elastic_job_gets_a_host_back(self):
        """Rank 0's host loses its network for a while, and has workers again."""
        with tempfile.TemporaryDirectory() as folder:
            process = self.start("--elastic", "1:2", "-H", "a,b", "--host-timeout", "4", worker, folder,
                                 DTRAIN_HEARTBEAT_TIMEOUT="2s", DTRAIN_OP_TIMEOUT="60s")
            try:
                said = ""
                while "[1] rank 1 of 2, step 0" not in said:
                    said += (line := process.stdout.readline())
                    self.assertTrue(line, said)
                connect("a", False)
                while "[1] rank 0 of 1, step above 0" not in said or "host a is lost" not in said:
                    said += (line := process.stdout.readline())
                    self.assertTrue(line, said)
                connect("a", True)
                while "] rank 1 of 2, step above 0" not in said:
                    said += (line := process.stdout.readline())
                    self.assertTrue(line, said)
                pathlib.Path(folder, "stop").touch()
                said += process.communicate(timeout=LIMIT)[0]
                self.assertEqual(process.returncode, 0, said)
            finally:
                connect("a", True)
                process.kill()
                process.stdout.close()
        self.daemons_are_left_alone("a")

    def assert_processes_end(self, host, seconds=30):
        """No process of the job is left on a host that cannot be reached."""
        def runs(pid):
            try:
                text = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
                return any(program in text for program in ("/dtrain-run", "/dtrain-bench", "/elastic_worker"))
            except OSError:  # it has just ended
                return False
        end = time.monotonic() + seconds
        while any(map(runs, ip("netns", "pids", space(host)).split())):
            self.assertLess(time.monotonic(), end, "still there")
            time.sleep(0.1)

    def daemons_are_left_alone(self, host="b"):
        """The daemon of the host that was cut off has noticed nothing yet: its session is ended here."""
        daemon = self.daemons[host].pid
        for pid in ip("netns", "pids", space(host)).split():
            if int(pid) != daemon:
                os.kill(int(pid), 9)


if __name__ == "__main__":
    bin_folder = os.path.abspath(sys.argv.pop(1))
    worker = os.path.abspath(sys.argv.pop(1))
    unittest.main()
