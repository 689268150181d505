#!/usr/bin/env python3
"""Plants a fault of each kind into the library, and expects the simulated lives of jobs to show it.

usage: planted.py BUILD [name ...]

A copy of the source gets the fault, and is compiled and linked as the build does. Prints for each
fault the number of lives that it took."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_LIVES = 1000

# name: file, a line's part, what stands there instead, what the failure says
PLANTS = {
    "a call never ends": (
        "lib/engine/agent.cpp", "if (now_ns_ >= operation->deadline_ns || is_due) {", "if (false) {",
        "its timeout is|has not ended"),
    "the smaller side goes on": (
        "lib/cluster/control/failover.cpp", "return came_.size() > others()", "return true || came_.size() > others()",
        "has members|were answered|has not ended|blames|its timeout is"),
    "a short silence is a death": (
        "lib/cluster/control/watch.cpp", "if (now - heard >= pace_.timeout)", "if (now - heard >= pace_.timeout / 8)",
        "though nothing had happened|blames|silent for|has not ended"),
    "a repeated push counts twice": (
        "lib/ps/server/server_table.cpp", "switch (entry.progress) {",
        "switch (entry.progress == Progress::done ? Progress::unseen : entry.progress) {",
        "is wrong|were answered|at clock|a number of pushes other than"),
    "the wrong rank is named": (
        "lib/cluster/host/names.cpp", "peer.index, peer.label.c_str());", "peer.index + 1, peer.label.c_str());",
        "blames"),
    "a blocked connection is forgotten": (
        "transports/tcp/connection_tx.cpp", "shared_.stale_interest = true;", "shared_.stale_interest = false;",
        "has not ended|nobody can ever run|its timeout is|though nothing had happened"),
    "a rank without memory blames others": (
        "lib/engine/mesh.cpp", "mesh.tell(rail, is_own_lack(event.status) ? event.status : DTRAIN_ERR_PEER,",
        "mesh.tell(rail, DTRAIN_ERR_PEER,", "blames"),
    "the newest checkpoint is removed": (
        "lib/ps/checkpoint/lineage.cpp", "if (i >= keep && !last) old.push_back", "if (i < keep) old.push_back",
        "is the newest"),
    "values change while a card reads them": (
        "lib/ps/server/server_table_answers.cpp", "if (reason == Reason::none && identity_.copies &&", "if (false &&",
        "was changed on its way|though nothing had happened|its timeout is"),
    "a number is sent in two halves": (
        "lib/ps/node/node.cpp", "|| may_tear_numbers(agent_);", "|| (false && may_tear_numbers(agent_));",
        "an element is|element \\d+ is|is wrong"),
    "a member is told of no loss": (
        "lib/cluster/control/coordinator.cpp", "to_all(gone, actions);", "(void)gone;",
        "nobody has told|its timeout is|has not ended|all surviving workers"),
    "a request is remembered after its table": (
        "lib/ps/node/node.cpp", "local_->settled(request);", "(void)request;", "ended by signal 11"),
}
FENCED = {"a request is remembered after its table"}


def commands(build):
    """Of all sources: how each is compiled, and the sources in it."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if "/Unity/" in entry["file"]:
            yield entry, re.findall(r'#include "(.*)"', path.read_text())
        elif path.is_relative_to(ROOT):
            yield entry, [entry["file"]]


def compile_planted(build, folder, source, old, new):
    """The object in which this source is, with the fault."""
    text = (ROOT / source).read_text()
    assert text.count(old) == 1, f"{source} has {text.count(old)} times: {old}"
    copy = folder / pathlib.Path(source).name
    copy.write_text(text.replace(old, new))
    entry, sources = next((e, s) for e, s in commands(build)
                          if str(ROOT / source) in s and re.search(r"dtrain_(layer|transport)", e["command"]))
    group = folder / "group.cpp"
    group.write_text("".join(f'#include "{copy if s == str(ROOT / source) else s}"\n' for s in sources))
    command = shlex.split(entry["command"])
    command[command.index("-c") + 1] = str(group)
    command[command.index("-o") + 1] = str(folder / "planted.o")
    # What the file includes by a name without a folder is where the file is.
    command += [f"-I{(ROOT / source).parent}", "-Wno-error"]
    subprocess.run(command, cwd=entry["directory"], check=True)
    return folder / "planted.o"


def link(build, folder, planted):
    objects = sorted((build / "tests" / "simulator").glob("CMakeFiles/simulator_test_lives.dir/*.o"))
    program = folder / "lives"
    # The fault's object stands before the library, which then lacks nothing that is in it.
    subprocess.run(["c++", "-rdynamic", "-o", program, *objects, build / "tests/CMakeFiles/test_filter.dir/filter.c.o", planted,
                    build / "lib/libdtrain.a", "-lcmocka", "-l:libsodium.a", "-ldl", "-lpthread"], check=True)
    return program


def lives_until_found(program, sign, fences):
    for first in range(1, MOST_LIVES, 50):
        done = subprocess.run([program, "jobs*"], env={**os.environ, "DTRAIN_SEED": str(first), "DTRAIN_SEEDS": "50",
                                                       "DTRAIN_SIMULATOR_FIRST": "1",
                                                       "DTRAIN_SIMULATOR_FENCES": "1" if fences else "0"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode == 0:
            continue
        seed = re.search(r"seed (\d+):", done.stdout)
        if seed is None or not re.search(sign, done.stdout):
            sys.exit(f"it failed otherwise than expected ({sign}):\n{done.stdout}")
        return int(seed.group(1)), next(line for line in done.stdout.splitlines() if re.search(sign, line))
    return None, ""


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    missed = []
    for name in sys.argv[2:] or PLANTS:
        source, old, new, sign = PLANTS[name]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            program = link(build, folder, compile_planted(build, folder, source, old, new))
            lives, said = lives_until_found(program, sign, name in FENCED)
        print(f"{name}: {'NOT FOUND' if lives is None else f'{lives} lives'}\n    {said[:200]}", flush=True)
        if lives is None:
            missed.append(name)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
