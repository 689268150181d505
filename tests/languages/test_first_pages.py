#!/usr/bin/env python3
"""The first program of a binding's README, and that of its package's own documentation, run as they stand there.
usage: test_first_pages.py java|go DTRAIN_RUN COMMAND...
  The last word of the command, which runs the program (Go: builds it as "program"), is the name of its file.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

BINDINGS = pathlib.Path(__file__).resolve().parent.parent.parent / "bindings"
RANKS = 2


def of_readme(language):
    return re.findall(rf"^```{language}\n(.*?)^```", (BINDINGS / language / "README.md").read_text(), re.M | re.S)[:1]


def of_java():
    text = (BINDINGS / "java/src/main/java/org/dtrain/package-info.java").read_text()
    return [re.sub(r"^ \* ?", "", code, flags=re.M)
            for code in re.findall(r"<pre>\{@code\n(.*?)^ \* \}</pre>", text, re.M | re.S)]


def of_go():
    lines = re.findall(r"^//(\t.*|)$", (BINDINGS / "go/doc.go").read_text(), re.M)
    return [textwrap.dedent("\n".join(lines)).strip() + "\n"]


def main(language, launcher, *command):
    programs = of_readme(language) + {"java": of_java, "go": of_go}[language]()
    if len(programs) != 2:
        return f"{len(programs)} programs, not 2"
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / command[-1]).write_text(program)
            start = [launcher, "--timeout", "100", "-n", str(RANKS), "--"]
            if language == "go":
                build = [f"{folder}/{word}" if word.startswith("program") else word for word in command]
                subprocess.run(build, check=True, cwd=BINDINGS / "go")
                run = [*start, f"{folder}/program"]
            else:
                run = [*start, *command]
            done = subprocess.run(run, cwd=folder, stdout=subprocess.PIPE, text=True)
            if done.returncode != 0 or len(done.stdout.splitlines()) != RANKS:
                return f"ended with {done.returncode}:\n{program}\n{done.stdout}"
            print(done.stdout, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
