#!/usr/bin/python3
"""examples/roles as a cluster of TensorFlow: a chief, a worker and a ps train, and an evaluator, which is
no member of their job, sees each checkpoint get better and ends with the last one. And an evaluator
whose job does not come. usage: test_roles.py RUN LANGUAGE=COMMAND...

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from ports import free_ports  # noqa: E402

SKIPPED = 77
LIMIT = 100  # seconds
CLEAN = {key: value for key, value in os.environ.items()
         if not re.match("DTRAIN_(?!TEST|TRANSPORTS)|TF_CONFIG$|RANK$|WORLD_SIZE$", key)}
CLEAN |= {"DTRAIN_JOIN_TIMEOUT": "60s", "DTRAIN_HEARTBEAT_TIMEOUT": "30s"}
STEPS = [50, 100, 150, 200, 250, 300]


def start(command, folder, **variables):
    return subprocess.Popen(command, env={**CLEAN, "DTRAIN_CHECKPOINT_DIRECTORY": folder, **variables},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(processes):
    """{name: (exit status, what it said)}"""
    try:
        return {name: (process.wait(0) if process.poll() is not None else None, said)
                for name, process in processes.items() for said in [process.communicate(timeout=LIMIT)[0]]}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def check(condition, text):
    if not condition:
        sys.exit(text)


def losses(said):
    return {int(step): float(loss) for step, loss in re.findall(r"evaluator: step (\d+): loss ([\d.]+)", said)}


def check_cluster(command):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(4)[:3]]
    cluster = {"chief": addresses[:1], "worker": addresses[1:2], "ps": addresses[2:]}
    with tempfile.TemporaryDirectory(prefix="dtrain-roles-") as folder:
        done = finish({kind: start(command, folder, TF_CONFIG=json.dumps(
            {"cluster": cluster, "task": {"type": kind, "index": 0}})) for kind in ("evaluator", *cluster)})
    for kind, last in (("chief", "chief (rank 0): done"), ("worker", "worker (rank 1): done"), ("ps", "server: done"),
                       ("evaluator", "")):
        status, said = done[kind]
        check(status == 0 and last in said, f"{kind} ended with {status}: {said}")
    seen = losses(done["evaluator"][1])
    check(set(seen) <= set(STEPS) and STEPS[-1] in seen and len(seen) > 1, f"not these steps: {seen}")
    quality = [seen[step] for step in sorted(seen)]
    check(all(later < earlier for earlier, later in zip(quality, quality[1:])), f"it does not get better: {seen}")
    print(f"evaluator: {seen}")


def check_restart(command, run):
    """The job continues from its last checkpoint, and its evaluator, started later, sees the newest."""
    with tempfile.TemporaryDirectory(prefix="dtrain-roles-") as folder:
        trained = finish({"job": start([run, "-n", "2", "--", *command], folder)})["job"]
        check(trained[0] == 0, f"the job ended with {trained}")
        again = finish({"job": start([run, "-n", "2", "-s", "1", "--", *command], folder),
                        "evaluator": start(command, folder, DTRAIN_ROLE="evaluator")})
    for name, (status, said) in again.items():
        check(status == 0, f"again: {name} ended with {status}: {said}")
    check(list(losses(again["evaluator"][1])) == [300], f"again: {again['evaluator']}")


def check_no_job(command):
    """It says for what it waits; here it is killed, since a minute is long."""
    with tempfile.TemporaryDirectory(prefix="dtrain-roles-") as folder:
        process = start(command, folder, DTRAIN_ROLE="evaluator")
        line = process.stdout.readline()
        process.kill()
        process.communicate()
        check(re.search(rf'waiting for a checkpoint in {folder} with table "weights": [2-9] s', line),
              f"no such line: {line}")


def check_no_member(folder_of_programs):
    """A program that knows no evaluators is refused, and told why."""
    done = subprocess.run([os.path.join(folder_of_programs, "dtrain-info"), "--join"], capture_output=True, text=True,
                          env={**CLEAN, "DTRAIN_ROLE": "evaluator"}, timeout=LIMIT, check=False)
    said = json.loads(done.stdout)
    check(not said["joins"] and said["role"] == "evaluator" and "is no member of the job" in said["why"], str(said))


def main(run, *commands):
    tested = 0
    for language, command in (text.split("=", 1) for text in commands):
        if not command:
            print(f"skipped: {language} was not built")
            continue
        command = shlex.split(command)
        check_cluster(command)
        check_restart(command, run)
        check_no_job(command)
        tested += 1
    check_no_member(os.path.dirname(run))
    return 0 if tested else SKIPPED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
