#!/usr/bin/python3
"""dtrain.launch over ssh: three hosts, which are network namespaces at a switch, two of them with an sshd of this test;
the third launches. Jobs, missing files, hosts that cannot be reached, a launcher that is killed, a link that is cut.
Needs root, iproute2 and openssh-server.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

SKIPPED = 77
LIMIT = 300  # seconds
TAG = f"dl{os.getpid()}"
INSIDE = "DTRAIN_TEST_SSH_FOLDER"
NAMES = ["launcher", "alpha", "beta"]
ENGINES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/engines"
PORT = 2222  # in namespaces of this test
SSHD = """
Port {port}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
ClientAliveInterval 10
ClientAliveCountMax 2
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Hosts:
    """with Hosts() as hosts: namespaces, names, keys and sshds, until the end."""

    def __enter__(self):
        self.daemons = []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dtrain-ssh-"))
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        ip("netns", "add", f"{TAG}switch")
        ip("-n", f"{TAG}switch", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        ip("-n", f"{TAG}switch", "link", "set", "br0", "up")
        for i, name in enumerate(NAMES):
            ip("netns", "add", TAG + name)
            ip("-n", TAG + name, "link", "set", "lo", "up")
            ip("-n", f"{TAG}switch", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", TAG + name)
            ip("-n", f"{TAG}switch", "link", "set", name, "master", "br0", "up")
            ip("-n", TAG + name, "address", "add", f"10.81.0.{i}/24" if i else "10.81.0.9/24", "dev", "eth0")
            ip("-n", TAG + name, "link", "set", "eth0", "up")
        names = pathlib.Path("/etc/netns", TAG + NAMES[0])
        names.mkdir(parents=True)
        (names / "hosts").write_text("127.0.0.1 localhost\n10.81.0.1 alpha\n10.81.0.2 beta\n10.81.0.77 nobody\n")
        for key in ("key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key], check=True)
        (self.folder / "sshd_config").write_text(SSHD.format(port=PORT, folder=self.folder))
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        for name in NAMES[1:]:
            with open(self.folder / f"{name}.log", "w") as log:
                self.daemons.append(subprocess.Popen(
                    ["ip", "netns", "exec", TAG + name, shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f",
                     self.folder / "sshd_config"], stdout=log, stderr=log))

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.terminate()
            daemon.wait()
        for name in [*NAMES, "switch"]:
            subprocess.run(["ip", "netns", "delete", TAG + name], capture_output=True)
            shutil.rmtree(f"/etc/netns/{TAG}{name}", ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def add_up():
    import dtrain
    from array import array
    with dtrain.Context(transports="tcp") as context:
        values = array("f", [context.rank])
        context.world.allreduce(values)
        names = ("DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE")
        return [values[0], os.environ["SSH_CONNECTION"].split()[2], *(os.environ[name] for name in names)]


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_death(pids, seconds=LIMIT):
    end = time.monotonic() + seconds
    while any(map(lives, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(lives, pids))


class Launching(unittest.TestCase):
    """In the namespace of the launcher."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(os.environ[INSIDE])
        end = time.monotonic() + LIMIT
        while not all(b"listening" in (cls.folder / f"{name}.log").read_bytes() for name in NAMES[1:]):
            assert time.monotonic() < end, "sshd does not listen"
            time.sleep(0.05)

    def settings(self, **more):
        return {"backend": "ssh", "hosts": "alpha:2,beta:2", "port": PORT, "identity": str(self.folder / "key"),
                "options": ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                            "-o", "ServerAliveInterval=1"],
                "env": {"PYTHONPATH": os.environ["PYTHONPATH"]}, "output": False, "progress": False, **more}

    def link(self, order):
        (self.folder / "new").write_text(order)
        (self.folder / "new").rename(self.folder / "link")
        while (self.folder / "link").exists():
            time.sleep(0.05)

    def failure(self, job, kind, seconds):
        """The text of the error in which a job ends within this time."""
        outcome = launch.await_workers(job, timeout_seconds=seconds)
        self.assertFalse(outcome.running or outcome.pending, str(outcome))
        with self.assertRaises(kind) as caught:
            outcome.check()
        return caught.exception

    def test_job_with_servers(self):
        results = launch.run_cluster(4, 1, add_up, timeout_seconds=LIMIT, **self.settings())
        self.assertEqual(results, [[6.0, "10.81.0.1", "0", "2"], [6.0, "10.81.0.1", "1", "2"],
                                   [6.0, "10.81.0.2", "0", "2"], [6.0, "10.81.0.2", "1", "2"]])
        self.assertEqual([result[1:] for result in launch.run_cluster(2, 0, add_up, timeout_seconds=LIMIT,
                                                                      **self.settings(hosts=["beta:2"]))],
                         [["10.81.0.2", "0", "2"], ["10.81.0.2", "1", "2"]])

    def test_example(self):
        settings = self.settings()
        done = subprocess.run([sys.executable, ENGINES / "ssh_digits.py", "alpha:1,beta:1", "-p", str(PORT), "-i",
                               self.folder / "key", *settings["options"]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("ssh: 2 workers, 9", done.stdout)

    def test_more_than_start_at_once(self):
        results = launch.run_cluster(14, 0, os.getpid, timeout_seconds=LIMIT, **self.settings(hosts="alpha:14"))
        self.assertEqual(len(set(results)), 14)

    def test_nothing_secret_in_arguments(self):
        with launch.launch_workers(1, "sleep", args=["100"], **self.settings(env={"WORD": "planted-word"})) as job:
            self.assertTrue(launch.await_workers(job, False, LIMIT).running)
            said = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
            self.assertIn("10.81" if "10.81" in said else "alpha", said)
            self.assertNotIn("planted-word", said)
            environment = pathlib.Path(f"/proc/{job[0].pid}/environ").read_bytes()
            self.assertIn(b"WORD=planted-word", environment)

    def test_missing(self):
        error = self.failure(launch.launch_workers(2, "nowhere.py", **self.settings()), launch.ScriptError, LIMIT)
        self.assertRegex(str(error), "script nowhere.py does not exist on .*, in /")
        error = self.failure(launch.launch_workers(1, "true", **self.settings(cwd="/nowhere")), launch.ScriptError, LIMIT)
        self.assertIn("/nowhere", str(error))
        error = self.failure(launch.launch_workers(1, "true", python="/nowhere/python3", **self.settings()),
                             launch.HostError, LIMIT)
        self.assertIn("host alpha: Python is not found there", str(error))

    def test_hosts_that_cannot_be_reached(self):
        with self.assertRaisesRegex(launch.SlotsError, r"5 workers, but hosts have 4 slots \(alpha:2, beta:2\)"):
            launch.launch_workers(5, "true", **self.settings())
        marks = self.folder / "marks"
        for name, said in (("nobody", "No route to host|timed out"), ("beta", "Connection refused"),
                           ("no-such-name", "resolve")):
            with self.subTest(name):
                settings = self.settings(hosts=["alpha", name], connect_timeout=4)
                if name == "beta":  # another port there
                    (self.folder / "config").write_text(f"Host beta\n Port 9\nHost *\n Port {PORT}\n")
                    settings["options"] = ["-F", str(self.folder / "config"), *settings["options"]]
                    settings["port"] = None
                job = launch.launch_workers(2, "sh", args=["-c", f"echo >> {marks}"], **settings)
                error = self.failure(job, launch.HostError, 40)
                self.assertRegex(str(error), f"rank 1: host {name}: the ssh connection could not be made, or is lost; "
                                             f"its last line: .*({said})")
                self.assertEqual(error.rank, 1)
        self.assertFalse(marks.exists())  # nothing has run on the host that was there

    def test_killed_launcher(self):
        program = textwrap.dedent(f"""
            import sys
            from dtrain import launch
            job = launch.launch_workers(2, "sh", args=["-c", "trap '' TERM; sleep 100 & echo $$ $!; wait"],
                                        **{self.settings(hosts='alpha,beta')!r})
            while not all(worker.tail() for worker in job):
                outcome = launch.await_workers(job, timeout_seconds=0.05)
                assert outcome.running or outcome.pending, outcome.failed
            print(*(worker.tail()[0] for worker in job), flush=True)
            launch.await_workers(job, timeout_seconds=100)
            """)
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        ready, _, _ = select.select([child.stdout], [], [], LIMIT)
        self.assertTrue(ready)
        pids = [int(pid) for pid in child.stdout.readline().split()]
        self.assertEqual(len(pids), 4)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        self.assertTrue(wait_for_death(pids, 20))

    def test_cut_link(self):
        backend = ssh.Backend(**self.connection(hosts="alpha,beta"))
        backend.patience = 8.0
        job = launch.launch_workers(2, "sleep", args=["100"], backend=backend, output=False, progress=False, grace=1)
        self.assertEqual(len(launch.await_workers(job, False, LIMIT).running), 2)
        pids = [worker.pid for worker in job]
        self.addCleanup(self.link, "beta master br0")
        self.link("beta nomaster")
        error = self.failure(job, launch.HostError, 60)
        self.assertEqual(error.rank, 1)
        self.assertIn("host beta: the ssh connection could not be made, or is lost", str(error))
        self.assertEqual(str(job[0].state), "stopped")
        self.assertTrue(wait_for_death(pids, 30))  # that of beta, too, which only hears nothing

    def test_elastic_job_without_its_first_host(self):
        """Rank 0's host is cut off: another process becomes the coordinator, and the newcomer finds it."""
        backend = ssh.Backend(**self.connection(hosts="alpha:1,beta:3"))
        backend.patience = 8.0
        job = launch.launch_workers(3, elastic_job.train, args=[str(self.folder)], elastic=(2, 3), backend=backend,
                                    env={**self.settings()["env"], "DTRAIN_TRANSPORTS": "tcp", "DTRAIN_HEARTBEAT_TIMEOUT": "4s"},
                                    output=False, progress=False)
        self.addCleanup(job.stop)
        self.wait_for(job, "of 3 in generation", 0, 1, 2)
        while job.generations == 0:  # rank 0's agent says it soon
            self.assertEqual(len(launch.await_workers(job, timeout_seconds=0.05).running), 3)
        self.assertEqual([backend.place(i) for i in range(3)], ["alpha", "beta", "beta"])
        self.addCleanup(self.link, "alpha master br0")
        self.link("alpha nomaster")
        self.wait_for(job, "of 3 in generation", 1, 2, 3)
        self.assertTrue(wait_for_death([job[0].pid], 60))  # it is cut off, too
        (self.folder / "end").touch()
        results = job.results(LIMIT)
        self.assertEqual([(result["right"], result["size"]) for result in results], 3 * [(True, 3)], said_by(job))
        (lost,) = launch.await_workers(job).check().replaced
        self.assertEqual(lost.index, 0)
        self.assertIn("host alpha: the ssh connection could not be made, or is lost", lost.reason)

    def test_elastic_job_moves_from_host_to_host(self):
        """Discovery names one more host, and then no longer the first one, where rank 0 is."""
        hosts = {"alpha": 1}
        settings = self.settings(discovery=lambda: dict(hosts), discovery_interval=0.2)
        del settings["hosts"]
        (self.folder / "moves").mkdir()
        job = launch.launch_workers(1, elastic_job.train, args=[str(self.folder / "moves")], elastic=(1, 2), servers=1, **settings)
        self.addCleanup(job.stop)
        self.wait_for(job, "of 1 in generation", 0)
        hosts["beta"] = 1
        self.wait_for(job, "of 2 in generation", 0, 2)
        self.assertIn(b"10.81.0.2", pathlib.Path(f"/proc/{job[2].pid}/environ").read_bytes())
        del hosts["alpha"]
        self.wait_for(job, "of 1 in generation", 2)
        (self.folder / "moves" / "end").touch()
        (result,) = job.results(LIMIT)
        self.assertEqual((result["right"], result["size"]), (True, 1), said_by(job))
        self.assertEqual([worker.index for worker in launch.await_workers(job).check().replaced], [0])
        self.assertEqual(job[0].reason, "host alpha is no longer there for it (discovery)")

    def wait_for(self, job, text, *indices):
        end = time.monotonic() + LIMIT
        while not all(len(job) > i and text in "\n".join(job[i].tail(1)) for i in indices):
            outcome = launch.await_workers(job, timeout_seconds=0.05)
            self.assertTrue(outcome.running or outcome.pending, said_by(job))
            self.assertLess(time.monotonic(), end, said_by(job))

    def connection(self, **more):
        """The settings that are ssh's."""
        return {name: value for name, value in self.settings(**more).items()
                if name not in ("output", "progress", "env", "backend")}


def supervise(hosts, child):
    """Takes cables out of the switch, and puts them back, when the tests ask for it: in their namespace they cannot."""
    order = hosts.folder / "link"
    while child.poll() is None:
        if order.exists():
            ip("-n", f"{TAG}switch", "link", "set", *order.read_text().split())
            order.unlink()
        time.sleep(0.05)
    return child.returncode


def main():
    lacks = [name for name in ("ip", "ssh", "ssh-keygen") if shutil.which(name) is None]
    lacks += [] if shutil.which("sshd") or os.path.exists("/usr/sbin/sshd") else ["sshd"]
    if lacks or os.geteuid() != 0:
        print(f"skipped: {', '.join(lacks) + ' not installed' if lacks else 'making network namespaces needs root'}")
        return SKIPPED
    with Hosts() as hosts:
        child = subprocess.Popen(["ip", "netns", "exec", TAG + NAMES[0], sys.executable, __file__, *sys.argv[1:]],
                                 env={**os.environ, INSIDE: str(hosts.folder)})
        return supervise(hosts, child)


if __name__ == "__main__":
    if INSIDE not in os.environ:
        sys.exit(main())
    import elastic_job
    from dtrain import launch
    from dtrain.launch import ssh
    from launching import said_by
    unittest.main()
