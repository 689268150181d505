// Every option of the library. Sorted by key (a test checks it).
// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/options.h"

#include <cstdint>

namespace dtrain {
namespace {

constexpr int64_t ever = INT64_MAX;
constexpr int64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;
using enum OptionKind;

constexpr OptionSpec table[] = {
    {"allreduce.algorithm", "auto", choice, 0, 0,
     "auto|direct|ring|recursive_doubling|halving_doubling|binomial_tree|double_tree|bruck|"
     "hierarchical|hierarchical_tree|window",
     "algorithm of all-reduce; auto: the cost model's choice"},
    {"checkpoint.directory", "", text, 0, 0, nullptr,
     "folder of the checkpoints of tables, which all servers and the workers that save or restore "
     "share; empty: none"},
    {"checkpoint.keep", "5", integer, 0, 1'000'000, nullptr,
     "how many of a job's checkpoints, the last ones, saving another one leaves; 0: all"},
    {"checkpoint.restore", "no", boolean, 0, 0, nullptr,
     "tables are made with what the newest checkpoint that has them has; the same on all ranks"},
    {"chunk.bytes", "auto", auto_size, 4 * KiB, GiB, nullptr,
     "pieces into which schedules cut large messages; auto: what \"dtrain-bench tune\" found, else "
     "256K, and over networks of remote writes 1M (of all rails)"},
    {"eager.bytes", "auto", auto_size, KiB, GiB, nullptr,
     "longest message that goes out before its receiver has a place for it, up to the transport's "
     "own limit; auto: what \"dtrain-bench tune\" found, else that limit"},
    {"explain", "no", boolean, 0, 0, nullptr,
     "log which way collectives take, why, and how the prediction compares (rank 0)"},
    {"gradients.bucket", "8M", size, 64 * KiB, GiB, nullptr,
     "gradient queues reduce small tensors together, up to so much at a time"},
    {"gradients.cycle", "500us", duration, 0, 1 * second, nullptr,
     "least time between two looks of a gradient queue at what is ready everywhere"},
    {"gradients.known", "4096", integer, 1, 65536, nullptr,
     "tensors of a gradient queue that stay known to all ranks while they do not wait"},
    {"gradients.stall", "60s", duration, 1 * ms, ever, nullptr,
     "a tensor that only some ranks have submitted is reported after this time"},
    {"gradients.stall_limit", "0", duration, 0, ever, nullptr,
     "such a tensor fails after this time; 0: only when its own timeout is over"},
    {"heartbeat.interval", "250ms", duration, 10 * ms, 60 * second, nullptr,
     "how often a process tells the coordinator that it is alive"},
    {"heartbeat.timeout", "5s", duration, 100 * ms, 3600 * second, nullptr,
     "silence after which a process counts as lost; up to four times as long where more processes "
     "than cores are, twice while a job starts; a process that ends is noticed at once"},
    {"join.timeout", "300s", duration, 1 * ms, ever, nullptr, "how long joining a job may take"},
    {"listen.address", "", text, 0, 0, nullptr,
     "own address or name to listen at; empty: all interfaces, of which the others try the best"},
    {"log.level", "warn", choice, 0, 0, "error|warn|info|debug", "least important line to log"},
    {"ofi.cache", "0", integer, 0, 1'000'000, nullptr,
     "MiB of memory that the libfabric transport keeps registered on its own account, and watches; "
     "0: none"},
    {"ofi.domain", "", text, 0, 0, nullptr,
     "cards (domains) of the libfabric transport, one rail each, as in mlx5_0,mlx5_1; empty: "
     "chosen "
     "by network, cores and local rank; dtrain-info shows which and why"},
    {"ofi.provider", "", text, 0, 0, nullptr,
     "provider of the libfabric transport, as in verbs;ofi_rxm; empty: the best RDMA network; one "
     "without RDMA (net, tcp;ofi_rxm) only if it is named here"},
    {"op.timeout", "600s", duration, 1 * ms, ever, nullptr,
     "how long an operation may take unless its parameters say otherwise"},
    {"plugin.path", "", text, 0, 0, nullptr,
     "folders, separated by ':', searched for transport plugins before the installed ones"},
    {"progress", "auto", choice, 0, 0, "auto|thread|manual",
     "who moves data: waiting callers and a helper, always the helper, or "
     "dtrain_context_progress()"},
    {"ps.functions", "", text, 0, 0, nullptr,
     "absolute paths, separated by ':', of the update rules (dtrain_function.h) that a server "
     "loads"},
    {"ps.memory", "0", size, 0, ever, nullptr,
     "most memory that tables may take in one server; 0: no limit of its own"},
    {"ps.peer_memory", "0", size, 0, ever, nullptr,
     "most memory that one worker may make a server hold besides tables, at least 1M; 0: no limit"},
    {"ps.retry", "500ms", duration, 1 * ms, 600 * second, nullptr,
     "after how long a request without an answer is sent again to its server"},
    {"ps.serve", "no", boolean, 0, 0, nullptr,
     "a worker serves tables, too, beside the job's dedicated servers (without any all do)"},
    {"secret", "", text, 0, 0, nullptr,
     "shared secret of the job; when set, every connection proves that it knows it", true},
    {"secret.file", "", text, 0, 0, nullptr,
     "file that holds the secret; only its owner may use it"},
    {"shm.copy", "auto", choice, 0, 0, "auto|ring",
     "how messages of 48 KiB and more, large all-gathers and all-to-alls are copied inside a host;"
     " auto: once, from process to process, where the kernel lets us; ring: through shared memory"},
    {"shm.directory", "", text, 0, 0, nullptr,
     "tmpfs folder for shared memory; empty: anonymous memory, which needs none"},
    {"stall.check", "20ms", duration, 1 * ms, 60 * second, nullptr,
     "an operation without progress for this long is compared with the other ranks' calls"},
    {"stall.limit", "90s", duration, 0, ever, nullptr,
     "a collective fails when nothing has moved on any of its ranks for this long though all have "
     "called it; 0: only when its own timeout is over"},
    {"tcp.congestion", "auto", text, 0, 0, nullptr,
     "congestion control of TCP connections; auto: reno on one host when the default is bbr"},
    {"tcp.interface", "", text, 0, 0, nullptr,
     "network interfaces or own addresses for data, one rail each, as in eth0,eth1; the same "
     "twice: "
     "two connections; empty: all, the one on the way to the rendezvous first"},
    {"timeline", "", text, 0, 0, nullptr,
     "file for a timeline of each rank's operations: %r is the rank, without it \".<rank>.json\" "
     "is appended; empty: none"},
    {"topology", "", text, 0, 0, nullptr,
     "where this host stands, the outermost first, as in zone/rack: collectives cross each border "
     "as rarely as they can; hosts are known without it"},
    {"transports", "shm,tcp", text, 0, 0, nullptr,
     "transports to open, best first; each pair of ranks uses the fastest that both can"},
    {"tuning.adapt", "no", boolean, 0, 0, nullptr,
     "try the two or three best algorithms of each kind and size, keep the fastest"},
    {"tuning.file", "", text, 0, 0, nullptr,
     "what \"dtrain-bench tune\" has measured on this machine; read by each communicator's rank 0"},
    {"ucx.devices", "", text, 0, 0, nullptr,
     "network devices that UCX uses, as in mlx5_0:1,mlx5_1:1; empty: UCX_NET_DEVICES, or all"},
    {"ucx.tls", "", text, 0, 0, nullptr,
     "UCX's own transports, as in rc,ud or tcp; empty: UCX_TLS, or all but shared memory"},
    {"wait.spin", "auto", auto_duration, 0, 10 * second, nullptr,
     "how long a waiting rank spins before it sleeps; auto: 50us, or not at all when ranks "
     "outnumber cores; ten times as long with a device that cannot wake it"},
    {"window.bytes", "2M", size, 64 * KiB, GiB, nullptr,
     "shared memory per rank and communicator for collectives inside a host; 16M for all at most"},
};

} // namespace

std::span<const OptionSpec> option_table() { return table; }

} // namespace dtrain
