"""Use after close, other threads, forks, signals, and the interpreter's end: exceptions, no crash.

SPDX-License-Identifier: Apache-2.0
"""
import copy
import os
import pickle
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
    """Runs the program in a new interpreter; returns its output."""
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


class Copied(unittest.TestCase):
    def test_refused(self):
        with dtrain.Context() as context:
            world = context.world
            table = world.table("x", length=1)
            for thing in (context, world, world.start, world.using(priority=1), table, table.start,
                          world.gradients(), world.graph("ring"), world.compressor("f16", 1),
                          context.allocate(1), world.start.barrier(), world.prepare):
                for make in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.subTest(type(thing).__name__, by=make.__name__), \
                            self.assertRaisesRegex(TypeError, "cannot be copied or pickled"):
                        make(thing)


class Interpreters(unittest.TestCase):
    TRY = """if True:
        try:
            import dtrain
            print("imported", flush=True)
        except ImportError as error:
            print(error, flush=True)
        """
    BEGIN = """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        interpreters.run_string(interpreters.create(), os.environ["TRY"])
        """
    TOLD = "dtrain is for one interpreter of a process, and another one has imported it; "

    def setUp(self):
        os.environ["TRY"] = self.TRY

    def test_second_one_is_told(self):
        self.assertIn(self.TOLD, run(self.BEGIN))

    def test_first_one_has_it(self):
        out = subprocess.run([sys.executable, "-c", "import os" + textwrap.dedent(self.BEGIN) +
                              "exec(os.environ['TRY'])"],
                             capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn("imported\n" + self.TOLD, out)

    def test_imported_again(self):
        run("""
            for name in [name for name in sys.modules if name.startswith("dtrain")]:
                del sys.modules[name]
            import dtrain as again
            with again.Context() as context:
                context.world.barrier()
                try:
                    context.world.allreduce(bytearray(3), 3)
                except TypeError as error:
                    assert "out: " in str(error), error
            """)


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
                        pass  # the descriptor of the listing
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
            # Nothing is broken: the interrupted receive takes no later message.
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
        for function, cause in ((fail, RuntimeError), (lambda mine: [mine], ValueError),
                                (lambda mine: [mine, b""], ValueError), (lambda mine: 3, TypeError)):
            with dtrain.Context() as context, self.assertRaises(dtrain.Error) as caught:
                context.join("oob", size=2, rank=0, allgather=function, timeout=5)
            self.assertIsInstance(caught.exception.__cause__, cause)

    def test_interrupted_exchange(self):
        def interrupt(mine):
            raise KeyboardInterrupt
        with dtrain.Context() as context, self.assertRaises(KeyboardInterrupt):
            context.join("oob", size=2, rank=0, allgather=interrupt, timeout=5)

    def test_failing_placement(self):
        def fail(first, count, servers):
            raise RuntimeError("no place")
        with dtrain.Context() as context:
            for function, cause in ((fail, RuntimeError), (lambda *_: "here", TypeError)):
                with self.assertRaises(dtrain.Error) as caught:
                    context.world.table("x", length=4, placement="user", place=function)
                self.assertIsInstance(caught.exception.__cause__, cause)


if __name__ == "__main__":
    unittest.main()
