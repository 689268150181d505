"""Elastic jobs of dtrain.ray, with a stand-in for Ray whose actors do what a test says: who is replaced, what the actors
are told, and how a job ends. tests/hosts/test_ray.py has the same with Ray.

SPDX-License-Identifier: Apache-2.0
"""
import unittest
from types import SimpleNamespace
from unittest import mock

from dtrain import launch
from dtrain._ray_elastic import OVER, ElasticRun
from dtrain.launch import _elastic
from dtrain.launch._elastic import Elastic


class RayError(Exception):
    pass


class RayActorError(RayError):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


class Reference:
    def __init__(self, method):
        self.method = method
        self.answer = None  # a function, once there is one

    def give(self, value):
        self.answer = lambda: value

    def fail(self, error):
        def answer():
            raise error
        self.answer = answer


class Actor:
    """Its methods are answered at once, but for run(), and where() without room."""

    def __init__(self, room=True):
        self.room = room
        self.alive = True
        self.identity = {}
        self.meeting = []  # what its next calls of exchange() return
        self.told = []
        self.references = {}

    def __getattr__(self, method):
        return SimpleNamespace(remote=lambda *arguments: self.call(method, *arguments))

    def call(self, method, *arguments):
        reference = self.references[method] = Reference(method)
        if not self.alive:
            reference.fail(RayActorError("it is dead"))
        elif method == "exchange":
            self.told += [text for text in arguments if text]
            reference.give(self.meeting.pop(0) if self.meeting else None)
        elif method == "become_elastic":
            self.identity = arguments[0]
            reference.give(None)
        elif method == "where" and self.room:
            reference.give("host")
        return reference

    def returns(self, value):
        self.references["run"].give(value)

    def raises(self, error):
        self.references["run"].fail(RayTaskError(error))

    def dies(self):
        self.alive = False
        for reference in self.references.values():
            reference.fail(RayActorError("it died"))


class Ray:
    """A wait() in which nothing ends but calls of exchange() is one step of the test's script."""
    exceptions = SimpleNamespace(RayError=RayError, RayActorError=RayActorError, RayTaskError=RayTaskError)

    def __init__(self, script):
        self.script = iter(script)

    def wait(self, references, num_returns, timeout):
        ready = [reference for reference in references if reference.answer is not None]
        if all(reference.method == "exchange" for reference in ready):
            next(self.script)()
        return ready, [reference for reference in references if reference.answer is None]

    @staticmethod
    def get(reference):
        return reference.answer()

    @staticmethod
    def kill(actor):
        actor.dies()


def text(generations, of="a"):
    return f"dtrain-rendezvous {of}:1 77 abcd {generations}"


class Jobs(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.multiple(_elastic, FIRST_PAUSE=0.0)
        patch.start()
        self.addCleanup(patch.stop)
        self.actors = [Actor(), Actor()]
        self.room = True

    def run_job(self, *script, sizes=(1, 2), timeout=600.0, servers=()):
        def idle():
            """The job would wait for ever: nothing is left that a test does."""
            raise AssertionError("the job has not ended")

        def new_worker():
            self.actors.append(Actor(self.room))
            return self.actors[-1]
        self.ray = Ray([*script, idle])
        self.job = ElasticRun(self.ray, Elastic(*sizes, timeout), self.actors[:2], ["host", "host"], servers, new_worker,
                              {"WORD": "x"}, (len, [], {}))
        return self.job.run()

    def say(self, index, said):
        self.actors[index].meeting.append(said)

    def test_one_that_dies_is_replaced(self):
        results = self.run_job(
            lambda: self.say(0, text(1)), *self.pause(),
            lambda: self.actors[1].dies(), *self.pause(),
            lambda: self.say(0, text(2)), *self.pause(),
            lambda: self.actors[2].returns("newcomer"), lambda: self.actors[0].returns("first"))
        self.assertEqual(results, ["first", "newcomer"])
        self.assertEqual(self.actors[0].identity["DTRAIN_RANK"], "0")
        self.assertEqual(self.actors[2].identity, {"WORD": "x", "DTRAIN_ROLE": "worker", "DTRAIN_RANK": "new"})
        self.assertEqual((self.actors[1].told, self.actors[2].told, self.actors[0].told), ([text(1)], [text(1), text(2)], []))
        self.assertEqual(len(self.job.living()), 2)

    @staticmethod
    def pause():
        return 3 * [lambda: None]

    def test_before_it_has_formed(self):
        """A lost worker's place is taken, but not that of rank 0."""
        self.assertEqual(self.run_job(lambda: self.actors[1].dies(), *self.pause(),
                                      lambda: self.actors[0].returns(1), lambda: self.actors[2].returns(2)), [1, 2])
        self.assertEqual((self.actors[2].identity["DTRAIN_RANK"], self.actors[2].identity["DTRAIN_SIZE"]), ("1", "2"))
        self.actors = [Actor(), Actor()]
        with self.assertRaisesRegex(launch.WorkerError, "worker 0: its actor has died: .*; the job could not form without rank 0"):
            self.run_job(lambda: self.actors[0].dies(), *self.pause())
        self.assertFalse(self.actors[1].alive)

    def test_no_room(self):
        self.room = False
        self.assertEqual(self.run_job(lambda: self.say(0, text(1)), *self.pause(), lambda: self.actors[1].dies(), *self.pause(),
                                      lambda: self.actors[0].returns("alone")), ["alone"])
        self.assertEqual((len(self.actors), self.actors[2].identity, self.actors[2].alive), (3, {}, False))

    def test_one_that_nobody_takes_in(self):
        """Those that wait are told that the job is over, and their failure is none of the job's."""
        def waits_in_vain():
            self.assertEqual(self.actors[2].told, [text(1), OVER])
            self.actors[2].raises(RuntimeError("over"))
        self.assertEqual(self.run_job(lambda: self.say(0, text(1)), *self.pause(), lambda: self.actors[1].dies(), *self.pause(),
                                      lambda: self.actors[0].returns(1), *self.pause(), waits_in_vain), [1])

    def test_nobody_can_take_it_in(self):
        with self.assertRaisesRegex(launch.WorkerError, "worker 0: its actor has died: .*no worker is left that could take"):
            self.run_job(lambda: self.say(0, text(1)), *self.pause(), lambda: self.actors[1].dies(), *self.pause(),
                         lambda: self.actors[0].dies(), *self.pause())

    def test_all_fail(self):
        def both():
            self.actors[0].raises(KeyError("planted"))
            self.actors[1].raises(KeyError("planted"))
        with self.assertRaisesRegex(launch.WorkerError, "worker 0: KeyError: 'planted'") as caught:
            self.run_job(lambda: self.say(0, text(1)), *self.pause(), both, *self.pause())
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_a_member_fails_after_others_have_ended(self):
        with self.assertRaisesRegex(launch.WorkerError, "worker 1: OSError: planted"):
            self.run_job(lambda: self.actors[0].returns(1), lambda: self.actors[1].raises(OSError("planted")))

    def test_a_server_dies(self):
        server = Actor()
        with self.assertRaisesRegex(launch.WorkerError, "server 0: its actor has died"):
            self.run_job(lambda: None, server.dies, *self.pause(), servers=[server])
        self.assertFalse(self.actors[0].alive)

    def test_too_few(self):
        self.room = False
        with self.assertRaisesRegex(launch.WorkerError, "worker 1: its actor has died: .*; the job could not go on: 1 of its "
                                                        r"workers run, and it needs 2 .*longer than 0 s"):
            self.run_job(lambda: self.say(0, text(1)), *self.pause(), lambda: self.actors[1].dies(), *self.pause(), sizes=(2, 2),
                         timeout=0.0)

    def test_texts_that_come_late(self):
        """The first worker was the coordinator of the generation before."""
        self.run_job(lambda: self.say(1, text(2, "b")), *self.pause(), lambda: self.say(0, text(1)), *self.pause(),
                     lambda: self.actors[0].returns(1), lambda: self.actors[1].returns(1))
        self.assertEqual((self.actors[0].told, self.actors[1].told), ([text(2, "b")], []))


if __name__ == "__main__":
    unittest.main()
