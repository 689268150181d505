"""Backends of dtrain.launch as far as they go without their engines: what they would run, what they refuse, and what
is missing. `./dev hosts` runs them with their engines.

SPDX-License-Identifier: Apache-2.0
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import dtrain
import dtrain.ray
import dtrain.spark
from dtrain import launch
from dtrain.launch import kubernetes, slurm, ssh
from dtrain.launch._hosts import parse_hosts, place
from dtrain.launch.local import Backend as Local


class Missing(unittest.TestCase):
    def test_packages_are_named(self):
        for module, start in (("ray", lambda: launch.launch_workers(1, "true", backend="ray")),
                              ("ray", lambda: dtrain.ray.Executor(1).start()),
                              ("pyspark", lambda: launch.launch_workers(1, "true", backend="spark")),
                              ("pyspark", lambda: dtrain.spark.run(os.getpid)),
                              ("kubernetes", lambda: launch.launch_workers(1, "true", backend="kubernetes", image="x"))):
            with self.subTest(module), mock.patch.dict(sys.modules, {module: None}), \
                    self.assertRaisesRegex(ImportError, f"needs the package {module}: pip install {module}"):
                start()

    def test_programs_are_named(self):
        for backend, settings, text in (("ssh", {"hosts": "a"}, "openssh-client"), ("slurm", {}, "slurm-client")):
            with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), self.assertRaisesRegex(launch.BackendError, text):
                launch.launch_workers(1, "true", backend=backend, **settings)

    def test_importing_launch_imports_nothing_heavy(self):
        code = "import sys, dtrain.launch, dtrain.ray, dtrain.spark; " \
               "print([name for name in ('numpy', 'ray', 'pyspark', 'kubernetes', 'cloudpickle') if name in sys.modules])"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "[]\n")


class Hosts(unittest.TestCase):
    def test_forms(self):
        self.assertEqual(parse_hosts("alpha:4, me@beta"), [("alpha", 4), ("me@beta", 1)])
        self.assertEqual(parse_hosts(["[fd00::1]:2", "10.0.0.1:3"]), [("fd00::1", 2), ("10.0.0.1", 3)])
        self.assertEqual(parse_hosts("alpha slots=2\nbeta:3\ngamma\n"), [("alpha", 2), ("beta", 3), ("gamma", 1)])
        self.assertEqual(parse_hosts({"alpha": 2, "fd00::1": 3, "busy": 0}), [("alpha", 2), ("fd00::1", 3)])
        for text in ("", "alpha:0", "alpha:x", "-oProxyCommand=x", "a b", "alpha,alpha:2", "alpha:999999"):
            with self.subTest(text), self.assertRaisesRegex(dtrain.InvalidError, "hosts: "):
                parse_hosts(text)

    def test_workers_fill_slots_and_servers_go_around(self):
        placed = place(parse_hosts("a:2,b:2"), 3, 3)
        self.assertEqual([host.name for host in placed], ["a", "a", "b", "a", "b", "a"])
        with self.assertRaisesRegex(launch.SlotsError, r"5 workers, but hosts have 4 slots \(a:2, b:2\)"):
            place(parse_hosts("a:2,b:2"), 5, 0)

    def test_ssh_gets_no_secret(self):
        backend = ssh.Backend("a:1,b:1", port=22, options=["-J", "gate"])
        plan = launch.make_plan(2, "true", env={"WORD": "planted"})
        with mock.patch("shutil.which", return_value="/usr/bin/ssh"):
            backend.check(plan)
        commands = [" ".join(carrier.command) for carrier in backend.carriers(plan, "job", "marker")]
        self.assertRegex(commands[1], "^ssh -T -x -J gate -p 22 .*BatchMode=yes.* b exec /bin/sh -c ")
        self.assertNotIn("planted", "".join(commands))
        self.assertNotIn(plan.env["DTRAIN_SECRET"], "".join(commands))
        self.assertEqual(backend.meet("fd00::1"), "[fd00::1]")
        with self.assertRaisesRegex(launch.BackendError, "gpus: backend \"ssh\" does not assign GPUs"):
            backend.check(launch.make_plan(1, "true", gpus=1))


class Slurm(unittest.TestCase):
    def test_what_is_asked_for(self):
        backend = slurm.Backend(partition="all", time_limit="1:00", options=["--exclusive"])
        plan = launch.make_plan(3, "true", servers=1, cpu=2, memory="1000MiB", gpus=1)
        (step,) = backend.carriers(plan, "job", "marker")
        for option in ("--ntasks=4", "--cpus-per-task=2", "--mem-per-cpu=500M", "--gpus-per-task=1", "--partition=all",
                       "--time=1:00", "--exclusive"):
            self.assertIn(option, step.command)
        self.assertEqual(step.split(b" 3: text: more"), (3, b"text: more"))
        self.assertEqual(step.split(b"srun: job 1 queued")[0], -1)
        self.assertEqual(step.split(b"9: not one of them")[0], -1)


class Kubernetes(unittest.TestCase):
    def test_manifest(self):
        plan = launch.make_plan(2, "train.py", servers=1, cpu=0.5, memory="64MiB", env={"WORD": "planted"})
        service, secret, job = kubernetes.manifest(plan, "name", "image")
        self.assertEqual({one["metadata"]["name"] for one in (service, secret, job)}, {"name"})
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual((job["spec"]["completionMode"], job["spec"]["completions"], job["spec"]["parallelism"]),
                         ("Indexed", 3, 3))
        template = job["spec"]["template"]
        self.assertEqual(template["spec"]["subdomain"], "name")  # pods have names
        self.assertEqual(template["metadata"]["labels"]["dtrain-job"], service["spec"]["selector"]["dtrain-job"])
        self.assertEqual(template["spec"]["containers"][0]["resources"]["requests"], {"cpu": "500m", "memory": str(64 << 20)})
        self.assertNotIn("planted", json.dumps(job))
        told = json.loads(base64.b64decode(secret["data"]["spec.json"]))
        self.assertEqual((told["env"]["DTRAIN_SIZE"], told["env"]["DTRAIN_SERVERS"], told["env"]["WORD"]), ("2", "1", "planted"))

    def test_the_agent_as_a_pod_runs_it(self):
        """Each index by its variable; servers after the workers."""
        plan = launch.make_plan(1, "sh", args=["-c", "echo worker $DTRAIN_SIZE; exit 3"], servers=1,
                                server_command=["echo", "server"])
        _, secret, job = kubernetes.manifest(plan, "name", "image", marker="@here")
        with tempfile.TemporaryDirectory() as folder:
            for name, data in secret["data"].items():
                pathlib.Path(folder, name).write_bytes(base64.b64decode(data))
            command = [part.replace("/dtrain-launch", folder) for part in
                       job["spec"]["template"]["spec"]["containers"][0]["command"]]
            for index, text, status in ((0, "worker 1", 3), (1, "server", 0)):
                done = subprocess.run(command, env={**os.environ, "JOB_COMPLETION_INDEX": str(index)}, capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, status, done.stderr)
                lines = done.stdout.splitlines()
                self.assertIn(text, lines)
                reports = [json.loads(line.partition("@here ")[2]) for line in lines if line.startswith("@here")]
                self.assertEqual([report["what"] for report in reports], ["here", "started", "ended"])
                self.assertEqual(reports[2]["status"], status)


class Own(unittest.TestCase):
    def test_a_backend_of_the_program(self):
        class Backend(Local):
            name = "own"

            def meet(self, reported):
                return "localhost"

        code = "import os; print(os.environ['DTRAIN_RENDEZVOUS'].rpartition(':')[0])"
        job = launch.launch_workers(2, code=code, backend=Backend(), output=False, progress=False)
        self.assertTrue(launch.await_workers(job))
        self.assertEqual([worker.tail() for worker in job], 2 * [["tcp://localhost"]])
        with self.assertRaisesRegex(dtrain.InvalidError, "hosts: settings of a backend that is given as an object"):
            launch.launch_workers(1, "true", backend=Local(), hosts="a")


if __name__ == "__main__":
    unittest.main()
