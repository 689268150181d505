#!/usr/bin/python3
"""Each language has every function of dtrain.h, the values of every parameter that is one of an
enumeration, and every parameter of tables.
usage: test_complete.py

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/abi"))
import header  # noqa: E402

HEADER = ROOT / "include/dtrain.h"
SOURCES = {"C++": ["include/dtrain/*.hpp"],
           "Python": ["bindings/python/dtrain/*.py", "bindings/python/extension/*"],
           "Go": ["bindings/go/*.go", "bindings/go/internal/capi/ca*"],  # by hand
           "Java": ["bindings/java/src/main/java/org/dtrain/*.java", "bindings/java/jni/*"]}
STRUCTS = ("dtrain_segment", "dtrain_table_params")
#: What languages say in other ways.
UNSAID = re.compile("DTRAIN_(OK$|IN_PROGRESS$|LOG_|GRAPH_(IN|OUT)$|MEM_|STREAM_)")
UNCALLED = {"C++": {"dtrain_version", "dtrain_status_text", "dtrain_dtype_size"},
            "Python": {"dtrain_request_test", "dtrain_dtype_size", "dtrain_function_register"},
            "Go": {"dtrain_request_test", "dtrain_dtype_size", "dtrain_function_register"},
            "Java": {"dtrain_version", "dtrain_status_name", "dtrain_status_text", "dtrain_mem_alloc",
                     "dtrain_mem_address", "dtrain_cq_fd", "dtrain_dtype_size", "dtrain_function_register"}}
#: Go's parameters of operations are initialized by calls.h.
SIZED = {"Python": "bindings/python/extension", "Go": "bindings/go/internal/capi", "Java": "bindings/java/jni"}
PLUMBING = {"struct_size", "reserved", "reserved2", "place_arg"}


def source_of(language):
    return "\n".join(path.read_text() for pattern in SOURCES[language] for path in sorted(ROOT.glob(pattern)))


def enumerators():
    found = re.findall(r"\b(DTRAIN_\w+) = (\d+)", header.preprocess(HEADER))
    return [(name, number) for name, number in found if not UNSAID.match(name)]


def fields():
    structs = header.structs(HEADER)
    return [(struct, field) for struct in STRUCTS for field in structs[struct] if field not in PLUMBING]


def has_function(language, source, name):
    short = name[len("dtrain_"):].capitalize() if language == "Go" else name
    return re.search(rf"\b({name}|{short})\b", source)


def has_enumerator(language, source, name, number):
    """Java's do not have C's names: PLACE_HASH is HASH(2), or HASH, or HASH = 2."""
    if language != "Java":
        return re.search(rf"\b{name}\b", source)
    parts = name.split("_")[1:]
    tails = ("_".join(parts[i:]) for i in range(len(parts)))
    return any(re.search(rf"^ +(?:static final int )?{tail}(?:\({number}[,)]|[,;]| = {number};)", source, re.MULTILINE) for tail in tails)


def has_field(language, source, struct, field):
    go = rf"\b{field}:" if struct == "dtrain_segment" else rf"\.Set_?(?i:{field})\("
    return re.search({"C++": rf"\.{field}\b", "Python": rf"\b{field}\b", "Go": go,
                      "Java": rf"\.set(?i:{field})\("}[language], source)


def missing(language, source):
    return ([name for name in header.declarations(HEADER)
             if name not in UNCALLED[language] and not has_function(language, source, name)] +
            [name for name, number in enumerators() if not has_enumerator(language, source, name, number)] +
            [f"{struct}.{field}" for struct, field in fields() if not has_field(language, source, struct, field)])


class Complete(unittest.TestCase):
    def test_there_is_something(self):
        self.assertIn("dtrain_table_push", header.declarations(HEADER))
        self.assertIn(("DTRAIN_PLACE_HASH", "2"), enumerators())
        self.assertIn(("dtrain_segment", "ftrl_beta"), fields())

    def test_nothing_is_missing(self):
        for language in SOURCES:
            with self.subTest(language):
                self.assertEqual(missing(language, source_of(language)), [])

    def test_structs_are_initialized(self):
        """%params makes a constructor that sets struct_size, which the library checks."""
        sized = {name for name, fields in header.structs(HEADER).items() if "struct_size" in fields}
        self.assertIn("dtrain_reform_params", sized)
        for language, folder in SIZED.items():
            typemaps = (ROOT / folder / "typemaps.i").read_text()
            made = set(re.findall(r"^%params\((\w+)", typemaps, re.MULTILINE))
            with self.subTest(language):
                self.assertEqual(sized - made - ({"dtrain_op_params"} if language == "Go" else set()), set())

    def test_planted_gaps(self):
        for language in SOURCES:
            gone = re.sub(r"DTRAIN_PLACE_HASH|\bHASH\b|(?i:ftrl_beta|\b(dtrain_)?table_clock\b)", "gone", source_of(language))
            with self.subTest(language):
                self.assertEqual(missing(language, gone), [
                    "dtrain_table_clock", "DTRAIN_PLACE_HASH", "dtrain_segment.ftrl_beta", "dtrain_table_params.ftrl_beta"])


if __name__ == "__main__":
    unittest.main()
