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


def scrape(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=LIMIT) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return response.read().decode()


def parse(text):
    """{name and labels: value}, and the metrics' types; fails where the text is not well-formed"""
    values, types, family = {}, {}, None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("# HELP "):
            family = re.fullmatch(r"# HELP (dtrain_server_\w+) [A-Z].*\.", line)[1]
            assert lines[number + 1].startswith(f"# TYPE {family} "), line
        elif line.startswith("#"):
            name, kind = re.fullmatch(r"# TYPE (\w+) (counter|gauge|histogram)", line).groups()
            assert name == family and name not in types, line
            assert (kind == "counter") == name.endswith("_total"), line
            types[name] = kind
        else:
            sample = re.fullmatch(r'(\w+)(\{\w+="[^"]*"(?:,\w+="[^"]*")*\}) (\d+)', line)
            assert sample, line
            parts = r"(_bucket|_sum|_count)" if types[family] == "histogram" else ""
            assert re.fullmatch(family + parts, sample[1]), line
            assert sample[1] + sample[2] not in values, line
            values[sample[1] + sample[2]] = int(sample[3])
    for name in (name for name, kind in types.items() if kind == "histogram"):
        for labels in (key.split("{")[1] for key in values if key.startswith(name + "_sum{")):
            check_histogram(values, name, labels)
    return values, types


def check_histogram(values, name, labels):
    begin = f"{name}_bucket{{{labels[:-1]},le="
    counts = [(key[len(begin) + 1:-2], value) for key, value in values.items()
              if key.startswith(begin)]
    bounds = [int(le) for le, _ in counts[:-1]]
    assert counts[-1] == ("+Inf", values[f"{name}_count{{{labels}"]), counts
    assert bounds == sorted(set(bounds)), counts
    least, most, before = 0, 0, 0
    for (_, count), low, high in zip(counts, [0] + [bound + 1 for bound in bounds],
                                     bounds + [float("inf")]):
        assert count >= before, counts
        least += (count - before) * low
        most += (count - before) * high if count > before else 0
        before = count
    assert least <= values[f"{name}_sum{{{labels}"] <= most, (counts, least, most)


def check_counts(text):
    """of what test_counts() has done"""
    values, types = parse(text)
    whole = 'server="0",table="table"'
    assert values[f"dtrain_server_updates_total{{{whole}}}"] == 4
    assert values[f"dtrain_server_table_bytes{{{whole}}}"] >= 4000
    whole += ',worker="0"'
    count = {key.split("{")[0][len("dtrain_server_"):]: value for key, value in values.items()
             if key.endswith(f"{{{whole}}}")}
    assert count == {"requests_total": 6,  # and a set
                     "repeats_total": 0, "refused_total": 0, "dropped_total": 0, "stale_total": 0,
                     "not_finite_total": 0,
                     "elements_total": 6000, "received_bytes_total": 20000,
                     "sent_bytes_total": 4000, "push_staleness_updates_count": 4,
                     "push_staleness_updates_sum": 0 + 1 + 2 + 0}, count
    bucket = lambda le: values[f'dtrain_server_push_staleness_updates_bucket{{{whole},le="{le}"}}']
    assert [bucket(le) for le in ("0", "1", "3", "+Inf")] == [2, 3, 4, 4]
    assert types["dtrain_server_push_staleness_updates"] == "histogram"
    assert types["dtrain_server_peer_held_bytes"] == "gauge"
    peer = 'server="0",worker="0"'
    assert values[f"dtrain_server_peer_held_bytes_max{{{peer}}}"] > 0
    assert values[f"dtrain_server_peer_held_bytes{{{peer}}}"] < 100_000


def breaks(text):
    """planted ones, each of which has to be found: (what, the text with it)"""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        others = lambda *own: "\n".join(lines[:i] + list(own) + lines[i + 1:])
        if line.startswith("#"):
            yield f"without {line}", others()
            yield f"twice {line}", others(line, line)
            yield f"another name in {line}", others(line.replace("dtrain_server_", "dtrain_", 1))
        if line.startswith("# TYPE"):
            kinds = {"counter": "gauge", "gauge": "counter", "histogram": "counter"}
            yield f"not {line}", others(*[line.replace(kind, kinds[kind])
                                          for kind in kinds if line.endswith(kind)])
        elif not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            never = "_total{" in name or "_sum{" in name or "_count{" in name
            if never and value != "0":
                yield f"never counted: {line}", others(f"{name} 0")
            if "_sum{" in name:
                for wrong in int(value) + 1, 10 * int(value) + 10:
                    yield f"sum {wrong}: {line}", others(f"{name} {wrong}")
            if "_bucket{" in name:
                yield f"one more: {line}", others(f"{name} {int(value) + 1}")
            yield f"no number: {line}", others(f"{name} nan")
            yield f"twice: {line}", others(line, line)


# Opens connections as fast as it can: some are kept, some send something, some are closed.
FLOOD = """
import socket, struct, sys
kept, reset = [], struct.pack("ii", 1, 0)
for i in range(10**9):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    one.bind((f"127.1.{i // 250 % 250}.{i % 250}", 0))
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", int(sys.argv[1])))
    try:
        one.send((b"", b"G", b"rubbish" * 30)[i % 3])
    except OSError:
        pass
    kept.append(one)
    if len(kept) > 100:
        kept.pop(0).close()
    if i == 500:
        print("on its way", flush=True)
"""


class Metrics(unittest.TestCase):
    options = ()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        rendezvous = f"file://{self.folder.name}/job"
        self.server = subprocess.Popen(
            [SERVER, "--rendezvous", rendezvous, "--workers", "1", "--servers", "1", "--index", "0",
             "--metrics", "0", *self.options], stdout=subprocess.PIPE, text=True)
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
            text = scrape(self.url)
        check_counts(text)
        for what, broken in breaks(text):
            with self.subTest(what), self.assertRaises((AssertionError, KeyError, TypeError)):
                check_counts(broken)

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
            values, types = parse(scrape(self.url))
        self.assertEqual([key for key in values if "table=" in key], [])
        self.assertIn("dtrain_server_requests_total", types)

    def connect(self):
        port = int(self.url.split(":")[2].split("/")[0])
        return socket.create_connection(("127.0.0.1", port), LIMIT)

    def test_strangers_do_not_keep_a_request_out(self):
        crowd = [self.connect() for _ in range(200)]  # each of which has two seconds, and says nothing
        for connection in crowd[::2]:
            connection.sendall(b"GET /met")
        parse(scrape(self.url))
        for connection in crowd:  # some were closed for others, and the others as their time is over
            try:
                self.assertEqual(connection.recv(100), b"")
            except ConnectionResetError:
                pass
            connection.close()

    def test_who_reads_nothing_holds_up_nobody(self):
        lazy = [self.connect() for _ in range(20)]
        for connection in lazy:
            connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        parse(scrape(self.url))
        for connection in lazy:
            connection.close()

    def test_a_flood_of_connections(self):
        """The tables' work goes on, and requests are answered; what is dropped is the flood."""
        port = int(self.url.split(":")[2].split("/")[0])
        flood = subprocess.Popen([sys.executable, "-c", FLOOD, str(port)], stdout=subprocess.PIPE)
        try:
            flood.stdout.readline()
            with tables.Table(self.job, "add", numpy.zeros(1000, numpy.float32)) as table:
                for _ in range(200):
                    table.push(numpy.ones(1000))
                self.assertEqual(table.pull()[0], 200)
                parse(scrape(self.url))
        finally:
            flood.kill()
            flood.wait()
            flood.stdout.close()
        held = len(os.listdir(f"/proc/{self.server.pid}/fd"))
        self.assertLess(held, 100)

    def test_its_thread_yields_to_the_others(self):
        scrape(self.url)  # so that it has begun
        tasks = pathlib.Path(f"/proc/{self.server.pid}/task").iterdir()
        nice = [int((task / "stat").read_text().rsplit(")", 1)[1].split()[16]) for task in tasks]
        self.assertEqual(sorted(nice)[-1] - sorted(nice)[0], min(10, 19 - sorted(nice)[0]))
        self.assertEqual(nice.count(sorted(nice)[-1]), 1)

    def test_a_bad_address_is_named(self):
        for address in "x", "1.2.3.4:0", "70000":
            result = subprocess.run([SERVER, "--metrics", address, "--rendezvous", "file:///dev/null",
                                     "--workers", "1", "--servers", "1", "--index", "0"],
                                    capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"--metrics {address}:", result.stderr)


class WithToken(unittest.TestCase):
    TOKEN = "a-token_of.letters~and/digits+0=="

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name, "token")

    def write(self, text, mode=0o600):
        self.file.write_text(text, encoding="ascii")
        self.file.chmod(mode)

    def test_who_has_it_is_answered(self):
        self.write(self.TOKEN + "\nanother line\n")
        job = type("Job", (Metrics,), {"options": ("--metrics-token", self.file)})("test_counts")
        job.setUp()
        try:
            for right in f"Bearer {self.TOKEN}", f"bearer  {self.TOKEN}":
                parse(scrape(job.url, Authorization=right))
            wrong = ({}, {"Authorization": self.TOKEN}, {"Authorization": f"Basic {self.TOKEN}"},
                     {"Authorization": f"Bearer {self.TOKEN}x"}, {"Authorization": f"Bearer {self.TOKEN[:-1]}"},
                     {"Authorization": "Bearer "}, {"Authorization": "Bearer another line"},
                     {"X-Authorization": f"Bearer {self.TOKEN}"})
            for headers in wrong:
                for path in "metrics", "other":
                    with self.subTest(headers, path=path), self.assertRaises(urllib.error.HTTPError) as refused:
                        scrape(job.url.replace("metrics", path), **headers)
                    self.assertEqual(refused.exception.code, 401)
                    self.assertEqual(refused.exception.headers["WWW-Authenticate"], "Bearer")
                    refused.exception.close()
            for piece in 1, 2, 7:
                for token, status in (self.TOKEN, 200), (self.TOKEN[::-1], 401):
                    self.assertEqual(self.ask_slowly(job, piece, token), status)
        finally:
            job.tearDown()

    def ask_slowly(self, job, piece, token):
        """The status, of a request that arrives in pieces."""
        head = f"GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: authorization: Bearer {token}\r\n"
        head = (head + f"aUTHORIZATION:\t bEARER {token}\r\nB: c\r\n\r\n").encode()
        with job.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(head), piece):
                connection.sendall(head[at:at + piece])
            return int(connection.recv(12).split()[1])

    def test_others_are_answered_with_a_token_alone(self):
        for address in "0.0.0.0:0", "[::]:0":
            result = subprocess.run([SERVER, "--metrics", address.replace("[", "").replace("]", "")],
                                    capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("--metrics-token", result.stderr)

    def test_a_bad_file_is_named(self):
        cases = (("word\n", 0o644, "chmod 600"), ("\n", 0o600, "empty"), ("", 0o600, "empty"),
                 ("x" * 1024, 0o600, "longer than 1023"), (None, 0, "No such file"))
        for text, mode, why in cases:
            self.file.unlink(missing_ok=True)
            if text is not None:
                self.write(text, mode)
            result = subprocess.run([SERVER, "--metrics", "0", "--metrics-token", self.file],
                                    capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"--metrics-token {self.file}: ", result.stderr)
            self.assertIn(why, result.stderr)


if __name__ == "__main__":
    unittest.main()
