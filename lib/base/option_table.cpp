// The table of all options of the library, sorted by key (a test checks the order).
// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/collective_algorithms.h"
#include "base/options.h"

#include <cstdint>

namespace dtrain {
namespace {

constexpr int64_t ever = INT64_MAX;
constexpr int64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;
using enum OptionKind;

#define DTRAIN_CHOICE(name)  "|" #name
#define DTRAIN_IN_TEXT(name) ", " #name

constexpr OptionSpec all_options[] = {
    {"accelerators", "auto", text, 0, 0, nullptr,
     "accelerators whose memory buffers may lie in, by the names of their plugins, as in cuda; "
     "auto: those whose own library the program has loaded when a context or communicator is "
     "made; none: all buffers are host memory"},
    {"accelerators.pinned", "1G", size, 0, ever, nullptr,
     "most host memory per accelerator that is kept pinned for later copies"},
    {"allreduce.algorithm", "auto", choice, 0, 0,
     "auto|window" DTRAIN_EACH_ALGORITHM(DTRAIN_CHOICE),
     "algorithm of all-reduce: "
     "auto (chosen by the cost model), window (as auto)" DTRAIN_EACH_ALGORITHM(DTRAIN_IN_TEXT)},
    {"checkpoint.directory", "", text, 0, 0, nullptr,
     "folder for checkpoints of tables; all servers, and all workers that save or restore, "
     "must share it; empty: no checkpoints"},
    {"checkpoint.keep", "5", integer, 0, 1'000'000, nullptr,
     "number of a job's newest checkpoints that are kept when another one is saved; 0: all"},
    {"checkpoint.restore", "no", boolean, 0, 0, nullptr,
     "create tables with their contents from the newest checkpoint that has them; the same on "
     "all ranks"},
    {"chunk.bytes", "auto", auto_size, 4 * KiB, GiB, nullptr,
     "size of the pieces into which schedules cut large messages, at most; auto: what "
     "\"dtrain-bench tune\" found, else 256K, or 1M (divided by the number of rails) on networks "
     "with remote writes"},
    {"eager.bytes", "auto", auto_size, KiB, GiB, nullptr,
     "longest message that is sent before its receive is posted, up to the transport's own "
     "limit; auto: what \"dtrain-bench tune\" found, else that limit"},
    {"elastic", "no", boolean, 0, 0, nullptr,
     "processes may join the job while it runs, when its workers call dtrain_comm_reform(); the "
     "same in all of them"},
    {"elastic.max", "0", integer, 0, 4096, nullptr,
     "most workers of an elastic job, where the call of dtrain_comm_reform() names none; 0: no "
     "limit"},
    {"elastic.min", "1", integer, 1, 4096, nullptr,
     "fewest workers of an elastic job, where the call of dtrain_comm_reform() names none"},
    {"explain", "no", boolean, 0, 0, nullptr,
     "log which algorithm each collective takes, why, and its predicted and measured time "
     "(rank 0)"},
    {"gradients.bucket", "8M", size, 64 * KiB, GiB, nullptr,
     "most bytes of small tensors that a gradient queue reduces together"},
    {"gradients.cycle", "500us", duration, 0, 1 * second, nullptr,
     "shortest interval at which a gradient queue checks which tensors are ready on all ranks"},
    {"gradients.known", "4096", integer, 1, 65536, nullptr,
     "number of tensors that a gradient queue remembers on all ranks while they are not "
     "submitted"},
    {"gradients.stall", "60s", duration, 1 * ms, ever, nullptr,
     "report a tensor that only some ranks have submitted after this time"},
    {"gradients.stall_limit", "0", duration, 0, ever, nullptr,
     "fail a tensor that only some ranks have submitted after this time; 0: only when its own "
     "timeout expires"},
    {"heartbeat.interval", "250ms", duration, 10 * ms, 60 * second, nullptr,
     "interval at which a process tells the coordinator that it is alive"},
    {"heartbeat.timeout", "5s", duration, 100 * ms, 3600 * second, nullptr,
     "a process that is silent for this long counts as lost; up to four times as long where "
     "processes outnumber cores, twice as long while a job starts; a process that ends is "
     "noticed at once"},
    {"join.timeout", "300s", duration, 1 * ms, ever, nullptr, "how long joining a job may take"},
    {"listen.address", "", text, 0, 0, nullptr,
     "address or name of this host to listen on; empty: all interfaces, and peers try the "
     "best of them"},
    {"log.level", "warn", choice, 0, 0, "error|warn|info|debug",
     "least severe level that is logged"},
    {"ofi.cache", "0", integer, 0, 1'000'000, nullptr,
     "MiB of unregistered buffers that the libfabric transport itself registers, keeps "
     "registered, and watches for changes; 0: none"},
    {"ofi.domain", "", text, 0, 0, nullptr,
     "network cards (libfabric domains), one rail each, as in mlx5_0,mlx5_1; empty: chosen by "
     "network, cores and local rank; dtrain-info shows which and why"},
    {"ofi.provider", "", text, 0, 0, nullptr,
     "libfabric provider, as in verbs;ofi_rxm; empty: the best RDMA network; a provider "
     "without RDMA (net, tcp;ofi_rxm) is used only if it is named here"},
    {"op.timeout", "600s", duration, 1 * ms, ever, nullptr,
     "how long an operation may take unless its parameters set another timeout"},
    {"plugin.path", "", text, 0, 0, nullptr,
     "folders, separated by ':', that are searched for transport plugins before the installed "
     "ones"},
    {"progress", "auto", choice, 0, 0, "auto|thread|manual",
     "what moves data; auto: waiting callers and a helper thread; thread: always the helper "
     "thread; manual: dtrain_context_progress()"},
    {"protection", "auto", choice, 0, 0, "auto|none|integrity|encrypted",
     "what protects connections, with keys made from the secret; the stronger of two sides' "
     "values counts; auto: with a secret, control connections are encrypted, and changes to data "
     "that may leave the host are errors (integrity), unless RDMA cards move them"},
    {"ps.access", "", text, 0, 0, nullptr,
     "file with the tokens for which a server grants rights on tables, a line each: the table's "
     "name (or its beginning and *), rights (create,push,pull,checkpoint, or all), token; only its "
     "owner may have access to it"},
    {"ps.device", "0", integer, 0, 4095, nullptr,
     "number of the GPU on which a server keeps tables with memory=CUDA, among those that its "
     "process sees"},
    {"ps.functions", "", text, 0, 0, nullptr,
     "absolute paths, separated by ':', of shared libraries with update rules "
     "(dtrain_function.h) that a server loads"},
    {"ps.memory", "0", size, 0, ever, nullptr,
     "most host memory that the tables of one server may take together; 0: no limit"},
    {"ps.peer_memory", "0", size, 0, ever, nullptr,
     "most memory besides tables that one worker may make a server hold, at least 1M; 0: no "
     "limit"},
    {"ps.retry", "500ms", duration, 1 * ms, 600 * second, nullptr,
     "a request that is not answered within this time is sent to its server again"},
    {"ps.serve", "no", boolean, 0, 0, nullptr,
     "this worker serves tables, too, beside the job's dedicated servers; in a job without "
     "dedicated servers all workers do"},
    {"ps.token.file", "", text, 0, 0, nullptr,
     "file with this worker's tokens for restricted tables, one a line; only its owner may have "
     "access to it"},
    {"secret", "", text, 0, 0, nullptr,
     "shared secret of the job; when set, both ends of every connection must prove that they "
     "know it",
     true},
    {"secret.file", "", text, 0, 0, nullptr,
     "file that holds the secret; only its owner may have access to it"},
    {"shm.copy", "auto", choice, 0, 0, "auto|kernel|ring",
     "how messages of 48 KiB and more and large collectives are copied within a host; kernel: "
     "once, directly between processes, where the kernel allows it; ring: through shared "
     "memory; auto: for each kind and size what is faster"},
    {"shm.directory", "", text, 0, 0, nullptr,
     "tmpfs folder for shared memory; empty: anonymous memory, which needs no folder"},
    {"shm.distance", "auto", choice, 0, 0, "auto|near|far",
     "how far apart the cores of a host's processes are taken to be: between near ones shared "
     "memory is written through the caches, between far ones past them; auto: as measured"},
    {"stall.check", "20ms", duration, 1 * ms, 60 * second, nullptr,
     "an operation that makes no progress for this long is compared with the other ranks' "
     "calls"},
    {"stall.limit", "90s", duration, 0, ever, nullptr,
     "a collective that all ranks have called fails when nothing moves on any of them for "
     "this long; 0: only when its own timeout expires"},
    {"tcp.congestion", "auto", text, 0, 0, nullptr,
     "congestion control of TCP connections; auto: reno within one host if the system's "
     "default is bbr"},
    {"tcp.interface", "", text, 0, 0, nullptr,
     "network interfaces or addresses of this host for data, one rail each, as in eth0,eth1; "
     "naming one twice opens two connections; empty: all, the one toward the rendezvous first"},
    {"timeline", "", text, 0, 0, nullptr,
     "file for a timeline of each rank's operations; %r stands for the rank, without it "
     "\".<rank>.json\" is appended; empty: no timeline"},
    {"topology", "", text, 0, 0, nullptr,
     "location of this host above the host level, outermost level first, as in zone/rack; "
     "collectives cross each level's border as rarely as they can"},
    {"transports", "shm,tcp", text, 0, 0, nullptr,
     "transports to open, best first; each pair of ranks uses the best one that both can"},
    {"tuning.adapt", "no", boolean, 0, 0, nullptr,
     "try the two or three best algorithms for each kind and size of collective, and keep the "
     "fastest"},
    {"tuning.file", "", text, 0, 0, nullptr,
     "file of measurements that \"dtrain-bench tune\" wrote on this machine; read by rank 0 "
     "of each communicator"},
    {"ucx.devices", "", text, 0, 0, nullptr,
     "network devices for UCX, as in mlx5_0:1,mlx5_1:1; empty: those of UCX_NET_DEVICES, or "
     "all"},
    {"ucx.tls", "", text, 0, 0, nullptr,
     "UCX's own transports to use, as in rc,ud or tcp; empty: those of UCX_TLS, or all but "
     "shared memory"},
    {"verify", "no", boolean, 0, 0, nullptr,
     "check every message of collectives and tables from the sender's memory to the receiver's, "
     "and results between ranks; a difference is an error that names the ranks; the same in all "
     "processes"},
    {"verify.results", "64", integer, 0, 1'000'000'000, nullptr,
     "with verify: of all-reduces, all-gathers and broadcasts of a communicator, each one of this "
     "number has its results compared between ranks; 0: none"},
    {"wait.spin", "auto", auto_duration, 0, 10 * second, nullptr,
     "how long a waiting rank spins before it sleeps; auto: 50us, or no spinning when ranks "
     "outnumber cores; ten times as long with a device that cannot wake it"},
    {"window.bytes", "2M", size, 64 * KiB, GiB, nullptr,
     "shared memory per rank and communicator for collectives within a host; at most 16M for "
     "all ranks of a communicator"},
};

} // namespace

std::span<const OptionSpec> option_table() { return all_options; }

} // namespace dtrain
