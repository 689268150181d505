"""First on the path, this is a machine without NumPy.

SPDX-License-Identifier: Apache-2.0
"""
raise ImportError("NumPy is not installed here")
