"""The tables that compare prints, from the records of all runs.
SPDX-License-Identifier: Apache-2.0"""
import os
import statistics

OWN = ("dtrain", "dtrain-shared")
# No peers: what is possible (peer_floor.c, ideal.c), and what our own TCP does.
FLOORS = ("floor", "floor-shared", "ideal", "dtrain-tcp")
CORES = len(os.sched_getaffinity(0))
CROWDED = 0.08  # foreign use of the machine, in cores, from which on a result is marked
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def median(records):
    return statistics.median(r["median_us"] for r in records)


def least(records):
    return min(r["min_us"] for r in records)


def size_name(size):
    for unit in "GMK":
        if size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def cell(records):
    """The median over rounds in us, marked when others used the machine meanwhile."""
    if not records:
        return "-"
    us = median(records)
    crowded = statistics.median(r["foreign"] for r in records) > CROWDED
    return f"{us:.{0 if us >= 1000 else 1 if us >= 100 else 2}f}{'~' if crowded else ''}"


def ratio(by_name, name, statistic):
    """The best peer's time in units of ours."""
    peers = [statistic(rs) for peer, rs in by_name.items() if peer not in OWN + FLOORS and rs]
    ours = by_name.get(name)
    return f"{min(peers) / statistic(ours):.2f}" if ours and peers else "-"


def sizes_of(options, kind):
    return options.sizes[:1] if kind == "barrier" else options.sizes


def print_table(title, columns, rows):
    widths = [max(len(str(r[i])) for r in [columns] + rows) for i in range(len(columns))]
    print(f"\n{title}")
    for row in [columns] + rows:
        print("  ".join(str(text).rjust(width) for text, width in zip(row, widths)))


def table(options, records, case, state=None):
    """One row per size and terms: every contender, and how much slower the best peer is."""
    kind, transport, ranks = case
    chosen = [r for r in records if (r["kind"], r["transport"], r["ranks"]) == case
              and state in (None, r["state"])]
    names = [n for n in options.names if any(r["contender"] == n for r in chosen)]
    own = [n for n in names if n in OWN]
    rows = []
    for terms in ("installed", "equal"):
        for size in sizes_of(options, kind):
            by_name = {name: [r for r in chosen if (r["contender"], r["terms"], r.get("bytes")) ==
                              (name, terms, size)] for name in names}
            if any(by_name.values()):
                rows.append([terms, size_name(size)] + [cell(rs) for rs in by_name.values()] +
                            [ratio(by_name, name, of) for name in own for of in (median, least)])
    where = f", cores {state}" if state else ""
    print_table(f"{kind}, {transport}, {ranks} ranks on {CORES} cores{where}: median us of the slowest rank",
                ["terms", "size"] + names +
                [title for name in own for title in (f"best/{name}", "of the least")], rows)


def beyond(records):
    """MiB of a process at its peak, without the buffer that is summed."""
    return (max(r.get("peak_kib", 0) for r in records) / 1024
            - max(r.get("bytes", 0) for r in records) / (1 << 20))


def system_calls(records, size):
    """Per rank and operation; what the harness does for itself is less than half of one."""
    calls = [r["system_calls"] for r in records if r.get("bytes") == size]
    return f"{statistics.median(calls):.1f}" if calls and min(calls) >= 0 else "-"


def start_table(options, records, transport, ranks):
    small = [s for s in options.sizes if s < 64 << 10]
    rows = []
    for name in options.names:
        mine = [r for r in records if (r["contender"], r["terms"], r["kind"], r["transport"],
                                       r["ranks"]) ==
                (name, "installed", "allreduce", transport, ranks)]
        starts = [r for r in mine if "start_ms" in r]
        waits = [r["wait_share"] for r in mine if "wait_share" in r]
        if starts:
            rows.append([name, f"{statistics.median(r['start_ms'] for r in starts):.0f}",
                         f"{beyond(mine):.1f}",
                         f"{statistics.median(waits):.1%}" if waits else "-"] +
                        [system_calls(mine, size) for size in small] + [starts[0]["version"]])
    print_table(f"{transport}, {ranks} ranks: from launch to a first all-reduce; the most "
                "memory of rank 0 beyond the buffer (all of the process); of a core, what a rank "
                "uses that waits for 1 s; system calls per rank and all-reduce",
                ["", "ms", "MiB", "waiting"] + [f"calls {size_name(s)}" for s in small] +
                ["version"], rows)


def summary(options, records):
    """The best peer's time in units of dtrain's: a row per kind, a column per size."""
    own = OWN[0]
    for transport in options.transports:
        for ranks in options.ranks:
            for terms in ("installed", "equal"):
                for state in options.states or [None]:
                    chosen = [r for r in records if (r["transport"], r["ranks"], r["terms"]) ==
                              (transport, ranks, terms) and state in (None, r["state"])]
                    summary_table(options, chosen, own, f"{transport}, {ranks} ranks, {terms}" +
                                  (f", cores {state}" if state else ""))


def summary_table(options, records, own, title):
    rows, ratios = [], []
    for kind in options.kinds:
        row = [kind]
        for size in options.sizes:
            by_name = {}
            for r in records:
                if (r["kind"], r.get("bytes")) == (kind, size):
                    by_name.setdefault(r["contender"], []).append(r)
            row.append(ratio(by_name, own, median))
        rows.append(row)
        ratios += [float(text) for text in row[1:] if text != "-"]
    if not ratios:
        return
    level, ahead = sum(r >= 0.97 for r in ratios), sum(r >= 1.5 for r in ratios)
    print_table(f"{title}: best peer's time / dtrain's; of {len(ratios)} cells {level} are at or above "
                f"0.97, {ahead} at or above 1.5", [""] + [size_name(size) for size in options.sizes], rows)
