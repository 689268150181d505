"""Horovod's API over dtrain: what was written for Horovod 0.28 runs by the change of an import (docs/HOROVOD.md):

    import dtrain.horovod.torch as hvd

Nothing of a framework is imported before one of its packages is.
SPDX-License-Identifier: Apache-2.0
"""
