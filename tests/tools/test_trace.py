#!/usr/bin/python3
"""Timelines and explanations of real jobs, and dtrain-trace. usage: test_trace.py FOLDER_OF_PROGRAMS TRACED

SPDX-License-Identifier: Apache-2.0
"""
import collections
import contextlib
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAMS, TRACED = sys.argv.pop(1), sys.argv.pop(1)
LIMIT = 100  # seconds; nothing here takes so long
KINDS = {"allreduce", "broadcast", "allgather", "barrier", "send", "recv", "push", "pull"}
STEPS = {"send", "recv", "copy", "reduce"}


def job(*arguments, **environment):
    command = [f"{PROGRAMS}/dtrain-run", "-n", "2", "-s", "1", "--", TRACED, *arguments]
    return subprocess.Popen(command, env=dict(os.environ, DTRAIN_HEARTBEAT_TIMEOUT="30s",
                                              **environment),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*arguments, **environment):
    with job(*arguments, **environment) as process:
        out, err = process.communicate(timeout=LIMIT)
    return process.returncode, out, err


def merge(*paths):
    return subprocess.run([f"{PROGRAMS}/dtrain-trace", "merge", *map(str, paths)],
                          capture_output=True, text=True, timeout=LIMIT, check=False)


def named(events, name):
    return [event for event in events if event["name"] == name]


class Timelines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check_events(self, events, rank):
        self.assertEqual(named(events, "process_name")[0]["args"]["name"], f"rank {rank}")
        self.assertEqual({event["pid"] for event in events}, {rank})
        done = [event for event in events if event["ph"] == "X"]
        operations = [event for event in done if event["tid"] < 100]
        steps = [event for event in done if event["tid"] > 100]
        self.assertLessEqual(KINDS, {event["name"] for event in operations})
        self.assertLessEqual({event["name"] for event in steps}, STEPS)
        self.assertEqual({event["args"]["status"] for event in operations}, {"DTRAIN_OK"})
        self.assertTrue(all(event["dur"] >= 0 for event in done))
        tracks = collections.defaultdict(list)
        for event in done:
            tracks[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        for spans in tracks.values():  # nothing overlaps on one track
            spans.sort()
            self.assertTrue(all(a[1] <= b[0] + 1e-3 for a, b in zip(spans, spans[1:])))
        return operations, steps

    def calls(self, operations):
        """{call number: what it was}, which must be the same on all ranks."""
        return {event["args"]["call"]: (event["name"], event["args"]["bytes"], event["args"]["comm"])
                for event in operations if "call" in event["args"]}

    def test_a_job_over_tcp(self):
        code, _, err = run("2", DTRAIN_TIMELINE=f"{self.folder}/t", DTRAIN_TRANSPORTS="tcp")
        self.assertEqual(code, 0, err)
        self.assertEqual(err, "")
        by_rank = []
        for rank in (0, 1):
            events = json.loads((self.folder / f"t.{rank}.json").read_text())
            operations, steps = self.check_events(events, rank)
            self.assertTrue(steps)
            by_rank.append(self.calls(operations))
            large = [event for event in operations if event["args"]["bytes"] == 200000]
            self.assertTrue(all(event["args"]["way"] for event in large))
            self.assertEqual(named(events, "dtrain_dropped")[-1]["args"]["records"], 0)
            self.assertEqual({event["args"]["way"] for event in named(operations, "push")},
                             {'table the "odd"\n\\name'})
            # Three all-reduces in flight at a time, in two rounds and one more.
            self.assertEqual(sum(event["args"]["bytes"] == 200000
                                 for event in named(operations, "allreduce")), 9)
        self.assertEqual(by_rank[0], by_rank[1])

    def test_started_by_the_program(self):
        code, _, err = run("2", f"{self.folder}/of %r.json")
        self.assertEqual(code, 0, err)
        for rank in (0, 1):
            events = json.loads((self.folder / f"of {rank}.json").read_text())
            operations, _ = self.check_events(events, rank)
            marks = [event for event in events if event["ph"] == "i"]
            self.assertEqual([mark["name"] for mark in marks], ['epoch "\x01\t?\xe9"'] * 2)
            ways = {event["args"].get("way") for event in operations}
            self.assertLessEqual({"window exchange", "window pipeline"}, ways)
            # The round after the end is not in it.
            self.assertEqual(len(named(operations, "push")), 2)

    def test_a_killed_process_leaves_what_can_be_read(self):
        with job("0", DTRAIN_TIMELINE=f"{self.folder}/t") as process:
            lines = [process.stdout.readline() for _ in range(2)]
            self.assertTrue(all("working" in line for line in lines), lines)
            files = [self.folder / f"t.{rank}.json" for rank in (0, 1)]
            while not all(path.stat().st_size > 100000 for path in files):
                self.assertIsNone(process.poll())
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            for child in children.split():
                with contextlib.suppress(ProcessLookupError):  # the launcher may be faster
                    os.kill(int(child), signal.SIGKILL)
            process.communicate(timeout=LIMIT)
        for rank in (0, 1):
            text = (self.folder / f"t.{rank}.json").read_text()
            with self.assertRaises(json.JSONDecodeError):
                json.loads(text)  # viewers do not mind, this one does
            self.check_events(json.loads(text[:text.rindex(",\n")] + "]"), rank)
        # As if the last write had been cut.
        path = self.folder / "t.1.json"
        path.write_text(path.read_text()[:-25])
        result = merge(self.folder / "all.json", *self.folder.glob("t.*.json"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        events = json.loads((self.folder / "all.json").read_text())
        self.assertEqual({event["pid"] for event in events}, {0, 1})

    def test_a_file_that_cannot_be_written(self):
        code, _, err = run("1", DTRAIN_TIMELINE=f"{self.folder}/missing/t")
        self.assertNotEqual(code, 0)
        # Whichever rank comes first ends the other.
        self.assertRegex(err, f'timeline: "{self.folder}/missing/t.[01].json" cannot be written')
        self.assertIn("No such file or directory", err)

    def test_links_are_not_followed(self):
        precious = self.folder / "precious"
        precious.write_text("mine")
        (self.folder / "t.0.json").symlink_to(precious)
        code, _, err = run("1", DTRAIN_TIMELINE=f"{self.folder}/t")
        self.assertNotEqual(code, 0)
        self.assertIn('t.0.json" cannot be written (option timeline): it is a symbolic link', err)
        self.assertEqual(precious.read_text(), "mine")

    def test_a_full_disk_ends_the_timeline_not_the_job(self):
        try:
            for rank in (0, 1): # as /dev/full
                os.mknod(self.folder / f"t.{rank}.json", stat.S_IFCHR | 0o600, os.makedev(1, 7))
            (self.folder / "t.0.json").open("wb").close()
        except OSError as error:
            self.skipTest(f"no devices can be made here: {error}")
        code, _, err = run("20", DTRAIN_TIMELINE=f"{self.folder}/t")
        self.assertEqual(code, 0, err)
        for rank in (0, 1):
            said = [line for line in err.splitlines() if f't.{rank}.json" ends here' in line]
            self.assertEqual(len(said), 1, err)
            self.assertIn("No space left on device", said[0])


class Explained(unittest.TestCase):
    def test_by_the_environment_and_not_on_stdout(self):
        code, out, err = run("2", DTRAIN_EXPLAIN="1", DTRAIN_TRANSPORTS="tcp")
        self.assertEqual(code, 0, err)
        self.assertNotIn("explain", out)
        said = [line for line in err.splitlines() if "explain: allreduce of 200000 bytes" in line]
        self.assertEqual(len(said), 1, err)
        self.assertRegex(said[0], r"over 2 ranks: \w+ \(predicted [0-9.]+ us\), took [0-9.]+ us; "
                                  r"others predicted: \w+ [0-9.]+ us, ")


class Merging(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def timeline(self, rank, host, offset, *events, end="\n]\n"):
        path = self.folder / f"{rank}.json"
        lines = [{"ph": "M", "name": "dtrain_host", "pid": rank, "tid": 0, "args": {"host": host}},
                 {"ph": "M", "name": "dtrain_wall_offset", "pid": rank, "tid": 0,
                  "args": {"ns": offset}}, *events]
        path.write_text("[\n" + ",\n".join(json.dumps(line, separators=(",", ":"))
                                          for line in lines) + end)
        return path

    @staticmethod
    def event(ts, **more):
        return {"ph": "X", "name": "a,\"ts\":9", "pid": 0, "tid": 1, "ts": ts, "dur": 1.5, **more}

    def test_clocks_of_other_hosts_are_moved(self):
        paths = [self.timeline(0, "a", 1000000, self.event(5.125)),
                 self.timeline(1, "a", 1700000, self.event(6.5)),
                 self.timeline(2, "b", 1002001, self.event(10.25), self.event(11))]
        out = self.folder / "out.json"
        result = merge(out, *paths)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        times = [event["ts"] for event in json.loads(out.read_text()) if event["ph"] == "X"]
        for found, wanted in zip(times, [5.125, 6.5, 10.25 + 2.001, 11 + 2.001]):
            self.assertAlmostEqual(found, wanted)
        self.assertEqual(len(times), 4)
        again = self.folder / "again.json"
        self.assertEqual(merge(again, out).returncode, 0)
        self.assertEqual(again.read_text(), out.read_text())

    def test_a_host_that_is_behind(self):  # by more than the first one has run
        out = self.folder / "out.json"
        result = merge(out, self.timeline(0, "a", 1000000), self.timeline(1, "b", 2250, self.event(5.25)))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertAlmostEqual(json.loads(out.read_text())[-1]["ts"], 5.25 - 997.75)

    def test_times_that_are_none(self):
        late = self.timeline(1, "b", 5, self.event(9223372036854775807))
        result = merge(self.folder / "out.json", self.timeline(0, "a", 1), late)
        self.assertEqual(result.returncode, 1)
        self.assertIn("1.json, line 4: a time out of range", result.stderr)

    def test_what_is_no_timeline(self):
        bad = self.folder / "bad"
        out = self.folder / "out.json"
        for text, why in (("hello\n", "line 1: not a timeline"), ("", None),
                          ("[\nnonsense\n{}\n]\n", "line 2: not an event")):
            bad.write_text(text)
            result = merge(out, bad)
            self.assertEqual(result.returncode, 0 if why is None else 1, text)
            if why is not None:
                self.assertIn(why, result.stderr)
                self.assertFalse(out.exists())
        bad.write_text("")
        self.assertEqual((merge(out, bad).returncode, merge(self.folder / "again.json", out).returncode), (0, 0))
        self.assertIn("No such file", merge(out, self.folder / "none").stderr)
        self.assertEqual(merge(out).returncode, 2)


if __name__ == "__main__":
    unittest.main()
