#!/usr/bin/env python3
"""Training with TensorFlow over dtrain next to TensorFlow's own strategies, in turns: steps per second of MLPs and a small
convolutional network with MultiWorkerMirroredStrategy (RING) and ParameterServerStrategy. Medians of all rounds.
usage: tensorflow_strategies.py [--workers N] [--rounds N] [--models NAME ...] [--json FILE]; `./dev bench-tf` runs it

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, List, NamedTuple

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from ports import free_ports  # noqa: E402

BATCH, OUTPUTS = 64, 10
SECONDS = 3.0  #: for which each measurement goes on
#: How each is run: function of a process, and how many servers there are.
WAYS = {"one process": ("alone", 0), "dtrain MultiWorkerMirroredStrategy": ("mirrored", 0),
        "dtrain DistributedOptimizer, fit()": ("fit", 0),
        "dtrain.horovod DistributedGradientTape": ("horovod_tape", 0),
        "dtrain.horovod DistributedOptimizer, fit()": ("horovod_fit", 0), "TensorFlow MultiWorkerMirroredStrategy RING": ("ring", 0),
        "dtrain ServerOptimizer, asynchronous": ("servers", 1),
        "TensorFlow ParameterServerStrategy": ("their_servers", 1)}


class Model(NamedTuple):
    inputs: List[int]
    layers: Callable[[Any], List[Any]]  #: of the module of layers
    steps: int  #: of a measurement in which ranks go in step


def mlp(hidden):
    return Model([64], lambda layers: [layers.Dense(hidden, "relu"), layers.Dense(hidden, "relu")], max(100, 200000 // hidden))


MODELS = {"64-256-256-10": mlp(256), "64-1024-1024-10": mlp(1024),
          "CNN": Model([16, 16, 3], lambda layers: [
              layers.Conv2D(32, 3, activation="relu"), layers.MaxPool2D(), layers.Conv2D(64, 3, activation="relu"),
              layers.MaxPool2D(), layers.Flatten(), layers.Dense(128, "relu")], 150)}


def network_of(model):
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input(model.inputs), *model.layers(layers), layers.Dense(OUTPUTS)])


def batch_of(model):
    return tf.random.normal([BATCH, *model.inputs]), tf.random.uniform([BATCH], 0, OUTPUTS, tf.int64)


def loss_of(model, batch):
    x, y = batch
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x, training=True)))


def step_of(model, optimizer, wrapped=lambda tape: tape):
    def step(batch):
        with tf.GradientTape() as tape:
            loss = loss_of(model, batch)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(wrapped(tape).gradient(loss, variables), variables))
        return loss
    return step


def rate_of(run, count=None):
    """Calls per second; with a count, as many calls, so that ranks that go in step make equally many."""
    for _ in range(10):
        run()
    begun = time.perf_counter()
    done = 0
    while done < count if count else time.perf_counter() - begun < SECONDS:
        run()
        done += 1
    return done / (time.perf_counter() - begun)


def train(strategy, model, optimizer, count):
    with strategy.scope():
        network = network_of(model)
        optimizer = optimizer()
        optimizer.build(network.trainable_variables)
    step, batch = step_of(network, optimizer), batch_of(model)

    @tf.function
    def run(batch):
        return strategy.run(step, args=(batch,))
    return rate_of(lambda: run(batch), count)


def sgd():
    return tf.keras.optimizers.SGD(0.01)


def alone(model):
    return train(tf.distribute.get_strategy(), model, sgd, None)


def mirrored(model):
    import dtrain.tensorflow as dt  # pylint: disable=import-outside-toplevel
    return train(dt.MultiWorkerMirroredStrategy(), model, sgd, model.steps)


def ring(model):
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING)
    return train(tf.distribute.MultiWorkerMirroredStrategy(communication_options=options), model, sgd, model.steps)


def fit(model):
    import dtrain.tensorflow as dt  # pylint: disable=import-outside-toplevel
    return fitted(model, dt.DistributedOptimizer(sgd()))


def horovod_fit(model):
    import dtrain.horovod.tensorflow.keras as hvd  # pylint: disable=import-outside-toplevel
    hvd.init()
    return fitted(model, hvd.DistributedOptimizer(sgd()))


def horovod_tape(model):
    import dtrain.horovod.tensorflow as hvd  # pylint: disable=import-outside-toplevel
    hvd.init()
    network, optimizer, batch = network_of(model), sgd(), batch_of(model)
    optimizer.build(network.trainable_variables)
    run = tf.function(step_of(network, optimizer, hvd.DistributedGradientTape))
    return rate_of(lambda: run(batch), model.steps)


def fitted(model, optimizer):
    network, steps = network_of(model), model.steps
    network.compile(optimizer=optimizer, loss=tf.keras.losses.SparseCategoricalCrossentropy(True))
    data = tf.data.Dataset.from_tensors(batch_of(model)).cache().repeat().prefetch(8)
    network.fit(data, steps_per_epoch=10, verbose=0)
    begun = time.perf_counter()
    network.fit(data, steps_per_epoch=steps, verbose=0)
    return steps / (time.perf_counter() - begun)


def servers(model):
    import dtrain.tensorflow as dt  # pylint: disable=import-outside-toplevel
    dt.init()
    return train(tf.distribute.get_strategy(), model, lambda: dt.ServerOptimizer("sgd", 0.01), None)


def their_servers(model):
    """The coordinator; workers and servers are tf.distribute.Server processes (served())."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        network, optimizer = network_of(model), sgd()
        optimizer.build(network.trainable_variables)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    step = step_of(network, optimizer)

    @tf.function
    def run():
        return strategy.run(step, args=(batch_of(model),))
    for _ in range(20):
        coordinator.schedule(run)
    coordinator.join()
    begun, done = time.perf_counter(), 0
    while time.perf_counter() - begun < SECONDS:
        for _ in range(50):
            coordinator.schedule(run)
        coordinator.join()
        done += 50
    return done / (time.perf_counter() - begun)


def served(_):
    config = json.loads(os.environ["TF_CONFIG"])
    tf.distribute.Server(config["cluster"], job_name=config["task"]["type"], task_index=config["task"]["index"],
                         protocol="grpc", start=True).join()


def start(function, model, **environment):
    return subprocess.Popen([sys.executable, "-W", "ignore", __file__, "--run", function, "--models", model],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment})


def collect(processes):
    """What each process has found."""
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    if any(process.returncode != 0 for process in processes):
        sys.exit(f"a process failed: {[process.args[4:] for process in processes if process.returncode != 0]}")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def run_dtrain(function, model, workers, server_count, programs):
    command = [f"{programs}/dtrain-run", "-n", str(workers), "-s", str(server_count), "--", sys.executable, "-W",
               "ignore", __file__, "--run", function, "--models", model]
    done = subprocess.run(command, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    lines = [line.split("] ", 1)[1] for line in done.stdout.splitlines() if line.startswith("[")]
    return [json.loads(line) for line in lines if line.startswith(tuple("0123456789"))]


def run_theirs(function, model, workers, server_count):
    names = [("worker", i) for i in range(workers)]
    if function == "their_servers":
        names += [("ps", i) for i in range(server_count)] + [("chief", 0)]
    cluster = {}
    for (kind, _), port in zip(names, free_ports(len(names) + 1)):
        cluster.setdefault(kind, []).append(f"127.0.0.1:{port}")

    def begin(kind, index):
        config = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        serves = function == "their_servers" and kind != "chief"
        return start("served" if serves else function, model, TF_CONFIG=config)
    processes = {name: begin(*name) for name in names}
    try:
        if function != "their_servers":
            return collect(processes.values())
        return collect([processes["chief", 0]])
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def measure(way, model, options):
    """Steps per second: of each rank where ranks go in step, else of all together."""
    function, server_count = WAYS[way]
    if function == "alone":
        return collect([start(function, model)])[0]
    if "TensorFlow" in way:
        found = run_theirs(function, model, options.workers, server_count)
    else:
        found = run_dtrain(function, model, options.workers, server_count, options.programs)
    return sum(found) if server_count else min(found)


def main(options):
    rates = {}
    for _ in range(options.rounds):
        for model in options.models:
            for way in WAYS:
                rates.setdefault((model, way), []).append(measure(way, model, options))
    print(f"TensorFlow {tf.__version__}, {options.workers} workers, batches of {BATCH}, medians of {options.rounds}\n")
    print("| steps per second | " + " | ".join(options.models) + " |")
    print("|---|" + "---:|" * len(options.models))
    for way in WAYS:
        found = (f"{statistics.median(rates[model, way]):.0f}" for model in options.models)
        print(f"| {way} | " + " | ".join(found) + " |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            all_rates = {f"{model} {way}": values for (model, way), values in rates.items()}
            json.dump({"rates": all_rates}, file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--programs", default="build/release/bin")
    parser.add_argument("--json")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    import tensorflow as tf  # pylint: disable=wrong-import-position
    if arguments.run:
        tf.config.threading.set_inter_op_parallelism_threads(2)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        print(json.dumps(globals()[arguments.run](MODELS[arguments.models[0]])), flush=True)
    else:
        main(arguments)
