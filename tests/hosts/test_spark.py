"""dtrain.spark, dtrain.launch on Spark, and the JVM's Rounds, on a cluster of two executors of this machine; and
examples/engines. usage: test_spark.py DTRAIN_JAR

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from array import array

import pyspark
from pyspark.sql import SparkSession

import dtrain
import dtrain.spark
from dtrain import launch
from launched import use_table

LIMIT = 300  # seconds
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENGINES = ROOT / "examples/engines"
HOME = pathlib.Path(pyspark.__file__).parent
MASTER = "local-cluster[2,2,512]"  # executors, cores and MiB of each
SETTINGS = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
jar = ""


def add_up(scale=1):
    with dtrain.Context() as context:
        values = array("f", [scale * context.rank])
        context.world.allreduce(values)
        return context.rank, values[0], os.environ["DTRAIN_LOCAL_RANK"]


def fail():
    with dtrain.Context() as context:
        context.world.barrier()
        if context.rank == 1:
            raise KeyError("planted")
        while True:
            context.world.allreduce(array("f", [1]))


class OnSpark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        builder = SparkSession.builder.master(MASTER)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        cls.session = builder.getOrCreate()
        cls.session.sparkContext.setLogLevel("ERROR")

    @classmethod
    def tearDownClass(cls):
        cls.session.stop()

    def test_results_are_in_rank_order(self):
        for scale in (1, 2):
            found = dtrain.spark.run(add_up, kwargs={"scale": scale}, num_proc=3, timeout=LIMIT)
            self.assertEqual([(rank, value) for rank, value, _ in found], [(rank, 3.0 * scale) for rank in range(3)])
        self.assertEqual(len(dtrain.spark.run(os.getpid, spark=self.session, timeout=LIMIT)),
                         self.session.sparkContext.defaultParallelism)

    def test_servers(self):
        self.assertEqual(dtrain.spark.run(use_table, num_proc=2, servers=1, timeout=LIMIT), 2 * [([2.0, 4.0], [-1])])

    def test_a_failure_names_the_rank_and_is_not_tried_again(self):
        with self.assertRaisesRegex(launch.WorkerError, "rank 1: KeyError: 'planted'; 1 more failed") as caught:
            dtrain.spark.run(fail, num_proc=2, timeout=LIMIT)
        self.assertEqual(caught.exception.rank, 1)
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_refused_and_canceled(self):
        with self.assertRaisesRegex(launch.SlotsError, "9 processes, but the executors run 4 tasks"):
            dtrain.spark.run(add_up, num_proc=8, servers=1)
        begin = time.monotonic()
        with self.assertRaisesRegex(launch.LaunchTimeoutError, "function sleep has not ended within 2 s"):
            dtrain.spark.run(time.sleep, [100], num_proc=2, timeout=2)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(len(dtrain.spark.run(add_up, num_proc=4, timeout=LIMIT)), 4)  # the slots are free again

    def test_launch(self):
        settings = {"backend": "spark", "output": False, "progress": False}
        self.assertEqual(launch.run_cluster(2, 1, use_table, timeout_seconds=LIMIT, **settings), 2 * [([2.0, 4.0], [-1])])
        job = launch.launch_workers(2, "sh", args=["-c", "echo rank $DTRAIN_RANK; exit $DTRAIN_RANK"], grace=0.2, **settings)
        with self.assertRaisesRegex(launch.WorkerError, "rank 1 on .*: exit status 1; its last line: rank 1"):
            job.wait(LIMIT).check()
        job = launch.launch_workers(2, "sleep", args=["100"], **settings)
        self.assertEqual(len(launch.await_workers(job, False, LIMIT).running), 2)
        job.stop()
        self.assertEqual([str(worker.state) for worker in job], ["stopped", "stopped"])
        with self.assertRaises(launch.SlotsError):
            launch.launch_workers(9, "true", **settings)


class Examples(unittest.TestCase):
    def submit(self, *arguments):
        settings = [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
        done = subprocess.run([HOME / "bin/spark-submit", "--master", MASTER, *settings, *arguments],
                              env={**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_python(self):
        self.assertRegex(self.submit(ENGINES / "spark_digits.py"), "(?s)spark: 2 workers, 9.*with a server: 2 workers, 9")

    def test_java(self):
        if shutil.which("javac") is None or not pathlib.Path(jar).exists():
            self.skipTest("the Java module is not built")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["javac", "-Xlint:all,-try,-serial,-classfile,-path", "-cp", f"{HOME}/jars/*:{jar}", "-d",
                            f"{folder}/classes", ENGINES / "SparkDigits.java"], check=True)
            subprocess.run(["jar", "cf", f"{folder}/digits.jar", "-C", f"{folder}/classes", "."], check=True)
            said = self.submit("--jars", jar, "--class", "SparkDigits", f"{folder}/digits.jar", "2",
                               str(ROOT / "examples/digits/data"))
        self.assertRegex(said, r"spark, in Java: 2 tasks, 9\d\.\d % of the test set")


if __name__ == "__main__":
    jar = sys.argv.pop(1)
    unittest.main()
