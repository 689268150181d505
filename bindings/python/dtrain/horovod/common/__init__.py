"""What Horovod's APIs of all frameworks share: the job, its process sets, and operations that ranks submit by name.

SPDX-License-Identifier: Apache-2.0
"""
