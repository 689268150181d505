#!/usr/bin/python3
"""Every descriptor that devices/, lib/, plugins/ and transports/ make is theirs from the start (transports/common): an
argument of Fd() or Descriptors::own(), which keep it from being 0, 1 or 2 and from forked children;
files and folders are opened by common/stream.h.
usage: descriptors.py [FOLDER]

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMMON = ("transports/common/descriptors.h", "transports/common/stream.h")
OCCUPIED = "transports/common/standard_descriptors.h"  # takes 0, 1 and 2 on purpose
MAKES = (r"(?:::)?\b(?:socket|accept4|epoll_create1?|eventfd|memfd_create|timerfd_create|signalfd|"
         r"inotify_init1?|dup|mkos?temp|creat)\s*\(|"
         r"\bsyscall\s*\(\s*SYS_(?:pidfd_open|pidfd_getfd|userfaultfd|memfd_create|openat2?)\b|"
         r"\bfcntl\s*\([^;]*F_DUPFD|"
         r"(?<![\w.>:])(?:::)?open(?:at)?\s*\([^;{]*\bO_(?:RDONLY|WRONLY|RDWR|PATH)")
OWNED = re.compile(r"(?:\bFd(?:\s+\w+)?\s*[({]|\bDescriptors::own\s*\()\s*(?:int\s*\(\s*)?$")
NEVER = re.compile(r"\b(?:fopen|fdopen|opendir|fdopendir|tmpfile|pipe2?|socketpair|ifstream|ofstream|"
                   r"fstream|directory_iterator|dup2|dup3)\b\s*[({]")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


def check_text(name, text):
    text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    found = [match for match in re.finditer(MAKES, text)
             if not OWNED.search(text[:match.start()])]
    found += NEVER.finditer(text)
    return [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group().split('(')[0].strip()}"
            " makes a descriptor that is not owned from the start"
            for match in sorted(found, key=re.Match.start)]


def check_tree(root):
    return [complaint for folder in ("devices", "lib", "plugins", "transports")
            for path in sorted((root / folder).rglob("*"))
            if path.suffix in (".cpp", ".h") and str(path.relative_to(root)) not in (*COMMON, OCCUPIED)
            for complaint in check_text(path.relative_to(root), path.read_text())]


def main(root):
    complaints = check_tree(root)
    print("\n".join(complaints) or "every descriptor is owned")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
