#!/usr/bin/python3
"""Trains the same made-up model with a table and with torch.optim, or NumPy where torch has no such
optimizer, and compares weights and state. usage: test_references.py LIBRARY

Without torch (Debian: python3-torch) its half is skipped and said so; without numpy, everything.

SPDX-License-Identifier: Apache-2.0
"""
import sys
import unittest

try:
    import numpy
    import tables
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None

LIBRARY = sys.argv.pop(1)
SEED, STEPS, SIZE, ROW = 7, 40, 1200, 40
TOLERANCE = {numpy.float32: 2e-5, numpy.float64: 1e-12}
norm = numpy.linalg.norm


def gradients(dtype):
    """The starting values, and a gradient per step"""
    random = numpy.random.default_rng(SEED)
    return (random.standard_normal(SIZE).astype(dtype),
            [random.standard_normal(SIZE).astype(dtype) for _ in range(STEPS)])


def schedule(step, rate):
    return rate if step < STEPS // 2 else rate / 4


class Compared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.job = tables.Job(LIBRARY)

    @classmethod
    def tearDownClass(cls):
        cls.job.close()

    def assert_close(self, got, due, dtype, what):
        wrong = numpy.max(numpy.abs(got - due) / (1 + numpy.abs(due)))
        self.assertLess(wrong, TOLERANCE[dtype], what)

    def each(self, rule, rate, more, make_reference):
        """make_reference(start) returns a function of (gradient, rate) that returns weights"""
        for dtype in TOLERANCE:
            start, pushed = gradients(dtype)
            reference = make_reference(start.copy())
            with tables.Table(self.job, rule, start, learning_rate=rate, **more) as table:
                for step, gradient in enumerate(pushed):
                    if schedule(step, rate) != schedule(step - 1, rate):
                        table.set_rate(schedule(step, rate))
                    table.push(gradient)
                    due = reference(gradient, schedule(step, rate))
                    self.assert_close(table.pull(), due, dtype, f"{rule} {more} step {step}")


@unittest.skipIf(torch is None, "no torch (Debian: python3-torch)")
class Torch(Compared):
    def check(self, rule, rate, optimizer, more=None, clip=None, **arguments):
        def make(start):
            weights = torch.nn.Parameter(torch.from_numpy(start))
            chosen = optimizer([weights], lr=rate, **arguments)

            def step(gradient, now):
                weights.grad = torch.from_numpy(gradient.copy())
                if clip is not None:
                    clip([weights])
                chosen.param_groups[0]["lr"] = now
                chosen.step()
                return weights.detach().numpy()
            return step
        self.each(rule, rate, more or {}, make)

    def test_sgd(self):
        optimizer = torch.optim.SGD
        self.check("sgd", 0.1, optimizer)
        self.check("sgd", 0.1, optimizer, {"weight_decay": 0.02}, weight_decay=0.02)
        self.check("momentum", 0.1, optimizer, {"momentum": 0.8}, momentum=0.8)
        self.check("nesterov", 0.1, optimizer, momentum=0.9, nesterov=True)
        self.check("nesterov", 0.1, optimizer, {"weight_decay": 0.02}, momentum=0.9, nesterov=True,
                   weight_decay=0.02)

    def test_adaptive(self):
        self.check("adagrad", 0.1, torch.optim.Adagrad, {"epsilon": 1e-10}, eps=1e-10)
        self.check("rmsprop", 0.01, torch.optim.RMSprop, {"rho": 0.99}, alpha=0.99)
        self.check("adadelta", 1, torch.optim.Adadelta)
        self.check("adadelta", 0.5, torch.optim.Adadelta, {"rho": 0.95, "epsilon": 1e-4}, rho=0.95,
                   eps=1e-4)

    def test_adam(self):
        self.check("adam", 0.01, torch.optim.Adam)
        self.check("adam", 0.01, torch.optim.Adam, {"beta1": 0.8, "beta2": 0.99,
                                                    "weight_decay": 0.1},
                   betas=(0.8, 0.99), weight_decay=0.1)
        self.check("adamw", 0.01, torch.optim.AdamW, {"weight_decay": 0.1}, weight_decay=0.1)
        self.check("amsgrad", 0.01, torch.optim.Adam, {"beta2": 0.9}, betas=(0.9, 0.9),
                   amsgrad=True)

    def test_one_count_for_all(self):
        more = {"steps": tables.STEPS_TABLE}
        self.check("adam", 0.01, torch.optim.Adam, more)
        self.check("adamw", 0.01, torch.optim.AdamW, dict(more, weight_decay=0.1),
                   weight_decay=0.1)

    def test_rows_by_one_count(self):
        """Rows that are pushed now and then, as torch.optim.SparseAdam has them, but for its
        epsilon, which it adds before the correction."""
        rows, dim, rate = 8, 5, 0.02
        start, pushed = (array.astype(numpy.float64) for array in (
            numpy.random.default_rng(SEED).standard_normal((rows, dim)),
            numpy.random.default_rng(SEED + 1).standard_normal((STEPS, dim))))
        weights = torch.nn.Parameter(torch.from_numpy(start.copy()))
        optimizer = torch.optim.SparseAdam([weights], lr=rate, eps=1e-20)
        with tables.Table(self.job, "adam", start.reshape(-1), learning_rate=rate,
                          epsilon=1e-20, steps=tables.STEPS_TABLE) as table:
            for step, gradient in enumerate(pushed):
                row = step % rows if step % 3 else 0
                weights.grad = torch.sparse_coo_tensor([[row]], gradient[None, :].copy(),
                                                       (rows, dim))
                optimizer.step()
                table.push(gradient, row * dim)
            self.assert_close(table.pull(), weights.detach().numpy().reshape(-1), numpy.float64,
                              "rows")

    def test_accumulator(self):
        self.check("adagrad", 0.1, torch.optim.Adagrad, {"epsilon": 1e-10, "accumulator": 0.3},
                   eps=1e-10, initial_accumulator_value=0.3)

    def test_schedules(self):
        of = torch.optim.lr_scheduler
        for name, n, decay, make in (
                ("linear", 9, 0.2, lambda o: of.LinearLR(o, 1, 0.2, 9)),
                ("cosine", STEPS, 0.1, lambda o: of.CosineAnnealingLR(o, STEPS, 0.01 * 0.1)),
                ("exponential", 1, 0.9, lambda o: of.ExponentialLR(o, 0.9)),
                ("staircase", 7, 0.5, lambda o: of.StepLR(o, 7, 0.5))):
            start, pushed = gradients(numpy.float64)
            weights = torch.nn.Parameter(torch.from_numpy(start.copy()))
            optimizer = torch.optim.Adam([weights], lr=0.01)
            scheduler = make(optimizer)
            with tables.Table(self.job, "adam", start, learning_rate=0.01, decay_steps=n,
                              schedule=tables.SCHEDULES[name], decay=decay) as table:
                for step, gradient in enumerate(pushed):
                    weights.grad = torch.from_numpy(gradient.copy())
                    optimizer.step()
                    scheduler.step()
                    table.push(gradient)
                    self.assert_close(table.pull(), weights.detach().numpy(), numpy.float64,
                                      f"{name} step {step}")

    def test_clipping(self):
        by_value = lambda weights: torch.nn.utils.clip_grad_value_(weights, 0.5)
        by_norm = lambda weights: torch.nn.utils.clip_grad_norm_(weights, 3)
        self.check("sgd", 0.1, torch.optim.SGD, {"clip_value": 0.5}, by_value)
        # torch divides by the norm + 1e-6.
        TOLERANCE[numpy.float64], kept = 1e-6, TOLERANCE[numpy.float64]
        self.addCleanup(lambda: TOLERANCE.update({numpy.float64: kept}))
        self.check("momentum", 0.1, torch.optim.SGD, {"clip_norm": 3}, by_norm, momentum=0.9)


class NumPy(Compared):
    """In double whatever the table is"""

    def check(self, rule, rate, step, more=None):
        """step(w, g, rate, state) returns new weights; state: a dict of zeros"""
        def make(start):
            state = {"w": start.astype(numpy.float64)}

            def advance(gradient, now):
                state["t"] = state.get("t", 0) + 1
                state["w"] = step(state["w"], gradient.astype(numpy.float64), now, state)
                return state["w"]
            return advance
        self.each(rule, rate, more or {}, make)

    def test_ftrl(self):
        l1, l2, beta = 0.5, 0.1, 1

        def step(w, g, rate, s):
            z, n = s.get("z", numpy.zeros(SIZE)), s.get("n", numpy.zeros(SIZE))
            s["z"] = z = z + g - (numpy.sqrt(n + g * g) - numpy.sqrt(n)) / rate * w
            s["n"] = n = n + g * g
            return numpy.where(numpy.abs(z) <= l1, 0, -(z - numpy.sign(z) * l1) /
                               ((beta + numpy.sqrt(n)) / rate + l2))
        self.check("ftrl", 0.1, step, {"l1": l1, "l2": l2})

    def test_rows(self):
        def step(w, g, rate, s):
            rows = g.reshape(-1, ROW)
            s["a"] = s.get("a", 0) + numpy.mean(rows * rows, axis=1, keepdims=True)
            return w - (rate * rows / (numpy.sqrt(s["a"]) + 1e-8)).ravel()
        self.check("adagrad_rows", 0.1, step, {"row_length": ROW})

    def test_lars(self):
        def step(w, g, rate, s, row=ROW):
            w, g = w.reshape(-1, row), g.reshape(-1, row)
            size = norm(w, axis=1, keepdims=True)
            local = 0.02 * size / (norm(g, axis=1, keepdims=True) + 0.1 * size)
            s["v"] = 0.9 * s.get("v", 0) + rate * local * (g + 0.1 * w)
            return (w - s["v"]).ravel()
        more = {"trust": 0.02, "weight_decay": 0.1}
        self.check("lars", 1, step, {"row_length": ROW, **more})
        self.check("lars", 1, lambda *arguments: step(*arguments, row=SIZE), more)

    def test_lamb(self):
        def step(w, g, rate, s, row=ROW):
            w, g = w.reshape(-1, row), g.reshape(-1, row)
            s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
            s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
            m, v = s["m"] / (1 - 0.9 ** s["t"]), s["v"] / (1 - 0.999 ** s["t"])
            u = m / (numpy.sqrt(v) + 1e-6) + 0.1 * w
            ratio = norm(w, axis=1, keepdims=True) / norm(u, axis=1, keepdims=True)
            return (w - rate * ratio * u).ravel()
        self.check("lamb", 0.01, step, {"row_length": ROW, "weight_decay": 0.1})
        self.check("lamb", 0.01, lambda *arguments: step(*arguments, row=SIZE),
                   {"weight_decay": 0.1})

    def test_delay_compensation(self):
        # each() pulls after every push: the worker knows the newest values, nothing is compensated.
        self.check("dc_sgd", 0.1, lambda w, g, rate, s: w - rate * g)
        start, pushed = gradients(numpy.float64)
        with tables.Table(self.job, "dc_sgd", start, learning_rate=0.1, compensation=0.3) as table:
            w = pulled = table.pull()
            for gradient in pushed:
                table.push(gradient)
                w = w - 0.1 * (gradient + 0.3 * gradient * gradient * (w - pulled))
            self.assert_close(table.pull(), w, numpy.float64, "dc_sgd")

    def test_proximal(self):
        def step(w, g, rate, _):
            w = w - rate * g
            return numpy.sign(w) * numpy.maximum(numpy.abs(w) - rate * 0.3, 0) / (1 + rate * 0.2)
        self.check("sgd", 0.1, step, {"l1": 0.3, "l2": 0.2})

    def test_combining(self):
        start, pushed = gradients(numpy.float64)
        references = {"add": start + sum(pushed), "assign": pushed[-1],
                      "mean": numpy.mean(pushed, axis=0),
                      "min": numpy.minimum(start, numpy.min(pushed, axis=0)),
                      "max": numpy.maximum(start, numpy.max(pushed, axis=0))}
        for rule, due in references.items():
            with tables.Table(self.job, rule, start) as table:
                for gradient in pushed:
                    table.push(gradient)
                self.assert_close(table.pull(), due, numpy.float64, rule)


class State(Compared):
    def test_a_restored_table_goes_on_as_before(self):
        for rule in tables.RULES:
            if rule in ("dc_sgd", "function"):
                continue
            start, pushed = gradients(numpy.float32)
            more = {"row_length": ROW}
            with tables.Table(self.job, rule, start, **more) as first:
                for gradient in pushed[:5]:
                    first.push(gradient)
                values, states = first.pull(), first.states()
                first.push(pushed[5])
                due = first.pull()
            with tables.Table(self.job, rule, values, **more) as second:
                second.set_states(states)
                second.push(pushed[5])
                numpy.testing.assert_array_equal(second.pull(), due, rule)

    def test_it_is_what_it_is_called(self):
        start, pushed = gradients(numpy.float32)
        with tables.Table(self.job, "amsgrad", start, beta2=0.9) as table:
            for gradient in pushed:
                table.push(gradient)
            states = {name: array for name, (_, array) in table.states().items()}
        second = greatest = 0
        for gradient in pushed:
            second = 0.9 * second + 0.1 * gradient.astype(numpy.float64) ** 2
            greatest = numpy.maximum(greatest, second)
        self.assertEqual(list(states), ["moment1", "moment2", "greatest", "steps"])
        self.assert_close(states["moment2"], second, numpy.float32, "moment2")
        self.assert_close(states["greatest"], greatest, numpy.float32, "greatest")
        numpy.testing.assert_array_equal(states["steps"], STEPS)


if __name__ == "__main__":
    unittest.main()
