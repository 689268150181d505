#!/usr/bin/env python3
"""Tasks of Spark: spark-submit spark_digits.py, or with a master as its argument.

SPDX-License-Identifier: Apache-2.0
"""
import sys

import dtrain.spark
from pyspark.sql import SparkSession
from train import report, train

if __name__ == "__main__":
    builder = SparkSession.builder.appName("digits")
    session = (builder.master(sys.argv[1]) if len(sys.argv) > 1 else builder).getOrCreate()
    report("spark", dtrain.spark.run(train, num_proc=2, spark=session, timeout=300))
    report("spark, with a server", dtrain.spark.run(train, args=[True], num_proc=2, servers=1, spark=session, timeout=300))
    session.stop()
