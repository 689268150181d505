"""First on the path, this is a machine without torch.

SPDX-License-Identifier: Apache-2.0
"""
raise ImportError("torch is not installed here")
