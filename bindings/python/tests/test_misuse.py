"""Use after close, other threads, forks, signals, and the interpreter's end: exceptions, no crash.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
from array import array

import dtrain


def run(program, *, expect=0):
    """In an interpreter of its own; its output."""
    program = "import dtrain, os, sys, threading, time\n" + textwrap.dedent(program)
    result = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True,
                            text=True, timeout=60, check=False)
    if result.returncode != expect:
        raise AssertionError(f"exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


class Closed(unittest.TestCase):
    def test_use_after_close(self):
        context = dtrain.Context()
        world = context.world
        view = world.using(timeout=1)
        request = world.start.allreduce(array("f", [1]))
        context.close()
        context.close()
        self.assertTrue(world.closed)
        request.wait()
        for use in (lambda: world.allreduce(array("f", [1])), lambda: world.rank,
                    lambda: world.start.barrier(), lambda: view.barrier(), lambda: world.failed,
                    lambda: context.world, context.describe, context.progress):
            with self.assertRaisesRegex(dtrain.StateError, "is closed"):
                use()

    def test_close_ends_what_is_in_flight(self):
        with dtrain.Context() as context:
            x = bytearray(4)
            request = context.world.start.recv(x, 0)
        with self.assertRaises(dtrain.CanceledError):
            request.wait()

    def test_close_while_another_thread_waits(self):
        with dtrain.Context() as context:
            world, ended = context.world, []

            def wait():
                try:
                    world.recv(bytearray(1), 0)
                except dtrain.Error as error:
                    ended.append(error)
            thread = threading.Thread(target=wait)
            request = None
            thread.start()
            while request is None or not ended:
                try:
                    request = world.start.send(b"", 0, tag=1)
                    context.close()
                except dtrain.BusyError:
                    world.abort("enough")
                    thread.join()
                else:
                    break  # closed before the thread began to wait
            thread.join()
            self.assertEqual(len(ended), 1)


class Forked(unittest.TestCase):
    def test_child(self):
        out = run("""
            with dtrain.Context() as context:
                world = context.world
                request = world.start.recv(bytearray(4), 0)
                child = os.fork()
                if child == 0:
                    for use in (lambda: world.allreduce(bytearray(1)), request.wait, request.done,
                                request.cancel, world.barrier, lambda: world.split(0)):
                        try:
                            use()
                        except dtrain.StateError as error:
                            assert "fork" in str(error), error
                        else:
                            print("no error")
                    del request
                    context.close()
                    with dtrain.Context() as own:
                        own.world.barrier()
                    print("child done", flush=True)
                    sys.exit(0)
                assert os.waitpid(child, 0)[1] == 0
                request.cancel()
            """)
        self.assertEqual(out, "child done\n")


    def test_multiprocessing(self):
        out = run("""
            import multiprocessing

            def sockets():
                targets = set()
                for name in os.listdir("/proc/self/fd"):
                    try:
                        targets.add(os.readlink(f"/proc/self/fd/{name}"))
                    except FileNotFoundError:
                        pass  # the listing's own
                return {target for target in targets if target.startswith("socket:")}

            def work(numbers):
                left = sockets() & kept
                with dtrain.Context() as own:
                    own.world.barrier()
                numbers.put((len(left), len(kept)))

            before = sockets()
            with dtrain.Context() as context:
                kept = sockets() - before
                fork = multiprocessing.get_context("fork")
                numbers = fork.SimpleQueue()
                children = [fork.Process(target=work, args=(numbers,)) for _ in range(2)]
                for child in children:
                    child.start()
                for child in children:
                    left, had = numbers.get()
                    assert left == 0 < had, (left, had)
                    child.join()
                    assert child.exitcode == 0
                context.world.barrier()
            print("all done")
            """)
        self.assertEqual(out, "all done\n")


class Ended(unittest.TestCase):
    def test_in_flight(self):
        for program in ("request = world.start.recv(bytearray(1 << 20), 0)",
                        "world.start.recv(bytearray(1 << 20), 0)",
                        "world.prepare.allreduce(bytearray(8)).start()"):
            with self.subTest(program):
                self.assertEqual(run(f"""
                    context = dtrain.Context()
                    world = context.world
                    {program}
                    """), "")

    def test_memory_in_use(self):
        self.assertEqual(run("""
            context = dtrain.Context()
            view = context.allocate(64).view()
            context.world.start.recv(view, 0)
            """), "")

    def test_daemon_thread_waits(self):
        self.assertEqual(run("""
            context = dtrain.Context()
            def wait():
                try:
                    context.world.recv(bytearray(1), 0)
                except dtrain.AbortedError:
                    pass
            threading.Thread(target=wait, daemon=True).start()
            time.sleep(0.1)
            """), "")

    def test_log_to_the_end(self):
        run("""
            context = dtrain.Context(log_level="debug", log=lambda level, line: None)
            context.world.barrier()
            """)


class Interrupted(unittest.TestCase):
    def test_during_waits(self):
        with dtrain.Context() as context:
            world = context.world
            request = world.start.recv(bytearray(1), 0, tag=1)
            for wait in (lambda: world.recv(bytearray(1), 0), request.wait):
                timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
                timer.start()
                begun = time.monotonic()
                with self.assertRaises(KeyboardInterrupt):
                    wait()
                self.assertLess(time.monotonic() - begun, 2)
                timer.join()
            # Nothing is broken: what was interrupted takes no message.
            x = bytearray(1)
            sent = world.start.send(b"y", 0)
            world.recv(x, 0)
            sent.wait()
            self.assertEqual(x, b"y")


class Callbacks(unittest.TestCase):
    def test_log(self):
        lines = []
        with dtrain.Context(explain=True, log=lambda *line: lines.append(line)) as context:
            context.world.allreduce(bytearray(8))
        self.assertTrue(lines)
        self.assertTrue(all(level in ("error", "warn", "info", "debug") for level, _ in lines))

    def test_exceptions_are_reported(self):
        out = run("""
            def sink(level, line):
                raise RuntimeError("the sink fails")
            with dtrain.Context(log=sink, explain=True) as context:
                context.world.allreduce(bytearray(8))
            """)
        self.assertIn("RuntimeError: the sink fails", out)

    def test_own_exchange(self):
        seen = []
        with dtrain.Context() as context:
            world = context.join(size=1, rank=0, allgather=lambda mine: seen.append(mine) or [mine])
            self.assertEqual(world.size, 1)

    def test_failing_exchange(self):
        def fail(mine):
            raise RuntimeError("no exchange")
        reports = []
        hook, sys.unraisablehook = sys.unraisablehook, reports.append
        try:
            with dtrain.Context() as context, self.assertRaises(dtrain.Error):
                context.join("oob", size=2, rank=0, allgather=fail, timeout=5)
        finally:
            sys.unraisablehook = hook
        self.assertEqual(str(reports[0].exc_value), "no exchange")


if __name__ == "__main__":
    unittest.main()
