#!/usr/bin/python3
"""dtrain-server --metrics, scraped. usage: test_metrics.py FOLDER_OF_PROGRAMS LIBRARY

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rules"))
import tables  # noqa: E402

LIBRARY = sys.argv.pop(2)
SERVER = os.path.join(sys.argv.pop(1), "dtrain-server")
LIMIT = 60  # seconds; nothing here takes so long


def scrape(url):
    """{name and labels: value}, and the metrics' types"""
    with urllib.request.urlopen(url, timeout=LIMIT) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = response.read().decode().splitlines()
    values = {}
    for line in lines:
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert re.fullmatch(r'\w+\{\w+="[^"]*"(,\w+="[^"]*")*\}', name), line
            assert name not in values, line
            values[name] = int(value)
    return values, {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}


class Metrics(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        rendezvous = f"file://{self.folder.name}/job"
        self.server = subprocess.Popen(
            [SERVER, "--rendezvous", rendezvous, "--workers", "1", "--servers", "1", "--index", "0",
             "--metrics", "0"], stdout=subprocess.PIPE, text=True)
        self.job = tables.Job(LIBRARY, environment={
            "DTRAIN_RENDEZVOUS": rendezvous, "DTRAIN_RANK": "0", "DTRAIN_SIZE": "1",
            "DTRAIN_SERVERS": "1"})
        self.url = re.fullmatch(r"metrics: (http://127\.0\.0\.1:\d+/metrics)\n",
                                self.server.stdout.readline())[1]

    def tearDown(self):
        self.job.close()
        self.assertEqual(self.server.wait(LIMIT), 0)
        self.server.stdout.close()
        self.folder.cleanup()

    def test_counts(self):
        with tables.Table(self.job, "add", numpy.zeros(1000, numpy.float32)) as table:
            for _ in range(3):
                table.push(numpy.ones(1000))
            table.pull()
            table.push(numpy.ones(1000))
            values, types = scrape(self.url)
        whole = 'server="0",table="table"'
        self.assertEqual(values[f"dtrain_server_updates_total{{{whole}}}"], 4)
        self.assertGreaterEqual(values[f"dtrain_server_table_bytes{{{whole}}}"], 4000)
        whole += ',worker="0"'
        count = lambda name: values[f"dtrain_server_{name}{{{whole}}}"]
        self.assertEqual(count("requests_total"), 6)  # and a set
        self.assertEqual(count("elements_total"), 6000)
        self.assertEqual(count("received_bytes_total"), 20000)
        self.assertEqual(count("sent_bytes_total"), 4000)
        self.assertEqual(count("refused_total"), 0)
        self.assertEqual(count("push_staleness_updates_count"), 4)
        self.assertEqual(count("push_staleness_updates_sum"), 0 + 1 + 2 + 0)
        bucket = lambda le: values[
            f'dtrain_server_push_staleness_updates_bucket{{{whole},le="{le}"}}']
        self.assertEqual([bucket(le) for le in ("0", "1", "3", "+Inf")], [2, 3, 4, 4])
        self.assertEqual(types["dtrain_server_push_staleness_updates"], "histogram")
        self.assertEqual(types["dtrain_server_requests_total"], "counter")

    def test_garbage_is_harmless(self):
        port = int(self.url.split(":")[2].split("/")[0])
        random.seed(1)
        garbage = [b"", b"\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"GET /metrics\r\n\r\n",
                   b"GET /metrics HTTP/1.1\r\n", random.randbytes(100), random.randbytes(100000),
                   b"GET " + b"x" * 5000, b"GET /metrics" + b"\0" * 4000 + b"\r\n\r\n"]
        for text in garbage:
            with socket.create_connection(("127.0.0.1", port), LIMIT) as connection:
                try:
                    connection.sendall(text)
                    connection.shutdown(socket.SHUT_WR)
                    self.assertFalse(connection.recv(1000).startswith(b"HTTP/1.1 200"))
                except OSError:
                    pass  # it has closed the connection before all was sent
        with self.assertRaises(urllib.error.HTTPError) as refused:
            scrape(self.url.replace("metrics", "other"))
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()
        with socket.create_connection(("127.0.0.1", port), LIMIT):  # says nothing
            values, types = scrape(self.url)
        self.assertEqual(values, {})
        self.assertIn("dtrain_server_requests_total", types)

    def test_a_bad_address_is_named(self):
        for address in "x", "1.2.3.4:0", "70000":
            result = subprocess.run([SERVER, "--metrics", address, "--rendezvous", "file:///dev/null",
                                     "--workers", "1", "--servers", "1", "--index", "0"],
                                    capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"--metrics {address}:", result.stderr)


if __name__ == "__main__":
    unittest.main()
