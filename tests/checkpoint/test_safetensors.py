"""A checkpoint is what the Python package safetensors reads.
usage: test_safetensors.py LIBRARY

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import pathlib
import sys
import tempfile

import numpy
import safetensors
import safetensors.numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rules"))
import tables  # noqa: E402


def save(job, table, step):
    handles = (ctypes.c_void_p * 1)(table.handle)
    job.call("dtrain_checkpoint_save", handles, ctypes.c_uint32(1), ctypes.c_uint64(step), None, None)


def check_values_and_momentum(job, folder):
    start = numpy.linspace(-1, 1, 100, dtype=numpy.float32)
    with tables.Table(job, "momentum", start, learning_rate=0.5, momentum=0.25) as table:
        table.push(numpy.ones(100))
        save(job, table, 12)
    path = f"{folder}/step-0000000012/table-00000-of-00001.safetensors"
    read = safetensors.numpy.load_file(path)
    assert sorted(read) == ["momentum", "values"], read
    assert numpy.array_equal(read["momentum"], numpy.ones(100, numpy.float32))
    assert numpy.array_equal(read["values"], start - numpy.float32(0.5))
    with safetensors.safe_open(path, "numpy") as file:
        about = file.metadata()
    assert about["table"] == "table" and about["rule"] == "momentum", about
    assert about["step"] == "12" and about["learning_rate"] == "0.5", about


def check_doubles_and_steps(job, folder):
    with tables.Table(job, "adam", numpy.zeros(100)) as table:
        for part in 40, 70:
            table.move("dtrain_table_push", numpy.ones(part))
        save(job, table, 13)
    read = safetensors.numpy.load_file(f"{folder}/step-0000000013/table-00000-of-00001.safetensors")
    assert read["values"].dtype == read["moment1"].dtype == numpy.float64
    assert read["steps"].dtype == numpy.uint64
    assert list(read["steps"]) == [2] * 40 + [1] * 30 + [0] * 30, read["steps"]


def check_int8_and_scales(job, folder):
    start = numpy.linspace(-3, 1, 300, dtype=numpy.float32)
    with tables.Table(job, "add", start, storage_dtype=tables.I8) as table:
        save(job, table, 14)
        kept = table.pull()
    read = safetensors.numpy.load_file(f"{folder}/step-0000000014/table-00000-of-00001.safetensors")
    assert sorted(read) == ["scales", "values"], read
    assert read["values"].dtype == numpy.int8 and read["scales"].dtype == numpy.float32
    scales = numpy.repeat(read["scales"], 128)[:start.size]  # one for each block of 128
    assert numpy.array_equal(read["values"] * scales, kept)
    assert numpy.all(numpy.abs(kept - start) <= 0.501 * scales)
    assert read["scales"][0] == numpy.float32(3) / numpy.float32(127)


def main(library):
    with tempfile.TemporaryDirectory() as folder:
        job = tables.Job(library, {"checkpoint.directory": folder})
        check_values_and_momentum(job, folder)
        check_doubles_and_steps(job, folder)
        check_int8_and_scales(job, folder)
        job.close()
    print(f"safetensors {safetensors.__version__}, numpy {numpy.__version__}: as saved")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
