"""dtrain.launch on Kubernetes: with the official client and an API server of this test (fake_kubernetes.py), which
checks manifests against the published schemas; and the manifest of examples/engines.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import sys
import time
import unittest

import kubernetes
import yaml
from fake_kubernetes import Cluster, validate

from dtrain import launch
from dtrain.launch import kubernetes as backend

LIMIT = 30  # seconds
EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/engines/kubernetes.yaml"


def add_up():
    import dtrain
    from array import array
    with dtrain.Context() as context:
        values = array("f", [context.rank])
        context.world.allreduce(values)
        print(f"rank {context.rank} of {context.size}")
        return values[0], os.environ["HOSTNAME"].rpartition("-")[2]


class Jobs(unittest.TestCase):
    def start(self, cluster, n, what, **settings):
        client = kubernetes.client.ApiClient(kubernetes.client.Configuration(host=cluster.url))
        return launch.launch_workers(n, what, backend="kubernetes", image="image", client=client, output=False,
                                     progress=False, python=sys.executable,
                                     env={"DTRAIN_RENDEZVOUS": f"file://{cluster.folder}/meeting"}, **settings)

    def test_runs_and_leaves_nothing(self):
        with Cluster() as cluster:
            job = self.start(cluster, 2, add_up, servers=1, cpu=0.5, memory="64MiB")
            self.assertEqual(job.results(LIMIT), [(1.0, "0"), (1.0, "1")])
            self.assertEqual(job[1].tail(), ["rank 1 of 2"])
            self.assertEqual([kind for kind, _ in cluster.deleted], ["jobs", "secrets", "services"])
            self.assertEqual(cluster.objects, {})

    def test_failure(self):
        with Cluster() as cluster:
            job = self.start(cluster, 2, "sh", args=["-c", "echo hello; exec sleep 0.$JOB_COMPLETION_INDEX$((1 / "
                                                     "JOB_COMPLETION_INDEX))00"], grace=0.1)
            with self.assertRaisesRegex(launch.WorkerError, "rank 0 on .*: exit status 2"):
                job.wait(LIMIT).check()

    def test_stop(self):
        with Cluster() as cluster:
            job = self.start(cluster, 2, "sleep", args=["100"])
            self.assertEqual(len(launch.await_workers(job, False, LIMIT).running), 2)
            begin = time.monotonic()
            job.stop()
            self.assertLess(time.monotonic() - begin, 15)
            self.assertEqual([str(worker.state) for worker in job], ["stopped", "stopped"])
            self.assertEqual(cluster.objects, {})

    def test_pods_that_wait(self):
        with Cluster(starts=False) as cluster:
            job = self.start(cluster, 1, "sleep", args=["100"])
            outcome = launch.await_workers(job, timeout_seconds=4)
            self.assertEqual(len(outcome.pending), 1)
            self.assertRegex(job[0].tail()[0], "pod dtrain-.*-0-x7k2p waits: ImagePullBackOff: the test keeps it so")
            job.stop()
            self.assertEqual(cluster.objects, {})

    def test_a_killed_pod(self):
        with Cluster() as cluster:
            job = self.start(cluster, 2, "sleep", args=["100"], grace=0.1)
            launch.await_workers(job, False, LIMIT)
            next(iter(cluster.pods.values())).process.kill()
            with self.assertRaisesRegex(launch.HostError, "rank 0 on .*pod dtrain-.*-0-x7k2p: Error, exit status 137"):
                job.wait(LIMIT).check()

    def test_refused(self):
        with Cluster() as cluster, self.assertRaisesRegex(launch.BackendError, "Job dtrain-.* could not be made: (?s:.*)hostNetwork"):
            self.start(cluster, 1, "sleep", pod={"hostNetwork": "perhaps"})
        self.assertEqual(cluster.objects, {})
        with self.assertRaisesRegex(launch.BackendError, "no cluster is configured"):
            launch.launch_workers(1, "sleep", backend="kubernetes", image="image", kubeconfig="/nowhere")


class Manifests(unittest.TestCase):
    def test_of_launch(self):
        plan = launch.make_plan(3, "train.py", servers=1, cpu=1.5, memory=2, gpus=1)
        made = backend.manifest(plan, "name", "image", {
            "nodeSelector": {"disk": "ssd"}, "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [{"volumeMounts": [{"name": "data", "mountPath": "/data"}]}]})
        for one in made:
            validate(one)
        pod = made[2]["spec"]["template"]["spec"]
        self.assertEqual(made[2]["spec"]["completions"], 4)
        self.assertEqual(pod["containers"][0]["resources"]["limits"],
                         {"cpu": "1500m", "memory": str(2 << 30), "nvidia.com/gpu": "1"})
        self.assertEqual([mount["name"] for mount in pod["containers"][0]["volumeMounts"]], ["launch", "data"])
        self.assertEqual([volume["name"] for volume in pod["volumes"]], ["launch", "data"])
        with self.assertRaises(Exception):
            validate({**made[2], "spec": {**made[2]["spec"], "completion": 1}})
        with self.assertRaisesRegex(launch.SendError, "too large for a secret"):
            backend.manifest(launch.make_plan(1, max, args=[b"x" * (1 << 20)]), "name", "image")

    def test_of_the_example(self):
        documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
        self.assertEqual([one["kind"] for one in documents], ["Service", "Job"])
        for one in documents:
            validate(one)


if __name__ == "__main__":
    unittest.main()
