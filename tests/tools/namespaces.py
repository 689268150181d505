"""Hosts for what a test starts: network namespaces, which need root.

SPDX-License-Identifier: Apache-2.0
"""
import os
import shutil
import subprocess

SKIPPED = 77


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def run_on_hosts(names, make_links, test):
    """Makes the hosts, calls make_links() and then test(), and removes them. Returns what test() returns, or SKIPPED if
    there can be no namespaces here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        print("skipped: making network namespaces needs root and iproute2")
        return SKIPPED
    try:
        try:
            for name in names:
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            make_links()
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"skipped: no network namespaces here: {getattr(error, 'stderr', error)}")
            return SKIPPED
        return test()
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)
