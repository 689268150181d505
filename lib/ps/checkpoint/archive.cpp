// Runs save and restore jobs, checks the files of a checkpoint, and holds the disk thread.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/archive.h"

#include "base/clock.h"
#include "base/thread.h"
#include "ps/checkpoint/row_file.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/table/file_name.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dtrain::ps {
namespace {

constexpr uint64_t populated_bytes = 4 << 20, turn_bytes = 1 << 20; // per step
constexpr int64_t least_rest = 20 * us;                             // after a turn

// Calls f(path, seal, number) for each file of the table in the checkpoint, in order, until a call
// fails.
template <class F>
Status for_each_file(const CheckpointFolder &folder, const Manifest &manifest,
                     const std::string &name, F &&f) {
    const Manifest::Table *table = manifest.find(name);
    if (table == nullptr)
        return fail(DTRAIN_ERR_NOT_FOUND, "checkpoint %llu in %s has no table \"%s\"",
                    static_cast<unsigned long long>(manifest.step), folder.path().c_str(),
                    name.c_str());
    const auto parts = uint32_t(table->parts.size());
    for (uint32_t i = 0; i < parts; ++i)
        if (Status s = f(folder.shard_path(manifest.step, name, i, parts), table->parts[i], i);
            s != DTRAIN_OK)
            return s;
    return DTRAIN_OK;
}

// The status of opening a file that the manifest lists: a missing file means a corrupt checkpoint.
Status opened(const std::string &path, Status s) {
    if (s == DTRAIN_OK || access(path.c_str(), F_OK) == 0) return s;
    return fail_within(DTRAIN_ERR_CORRUPT, "a file is missing");
}

CheckpointName name_of(const Manifest &manifest) { return {manifest.step, manifest.id}; }

bool overlap(const Part &a, const Part &b) {
    uint64_t shared = 0;
    for (size_t i = 0; i < a.ranges(); ++i)
        b.for_each_overlap(a.range(i), [&](const Range &both, uint64_t) { shared += both.count; });
    return shared > 0;
}

// Checks that each element of the table is in exactly one range. ranges: pairs of first and end.
Status check_cover(std::vector<std::pair<uint64_t, uint64_t>> &ranges, uint64_t length) {
    std::sort(ranges.begin(), ranges.end());
    ranges.emplace_back(length, length);
    uint64_t next = 0;
    for (const auto &[first, end] : ranges) {
        if (first != next)
            return fail(DTRAIN_ERR_CORRUPT, "element %llu is in %s of the files",
                        static_cast<unsigned long long>(std::min(first, next)),
                        first > next ? "none" : "two");
        next = end;
    }
    return DTRAIN_OK;
}

// Opens and checks each shard file of a dense table and calls f(file, number).
template <class F>
Status for_each_shard(const CheckpointFolder &folder, const Manifest &manifest,
                      const std::string &name, const TableParams &params, F &&f) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    auto look = [&](const std::string &path, const Manifest::Part &known, uint32_t which) {
        ShardFile file;
        if (Status s = opened(path, file.open(path, known, name_of(manifest), name, params));
            s != DTRAIN_OK)
            return s;
        for (size_t i = 0; i < file.part().ranges(); ++i) {
            const Range &range = file.part().range(i);
            ranges.emplace_back(range.first, range.end());
        }
        return f(file, which);
    };
    Status s = for_each_file(folder, manifest, name, look);
    if (s != DTRAIN_OK) return s;
    s = check_cover(ranges, params.length);
    return s == DTRAIN_OK ? s
                          : fail_within(s, "checkpoint %llu in %s, table \"%s\"",
                                        static_cast<unsigned long long>(manifest.step),
                                        folder.path().c_str(), name.c_str());
}

template <class F>
Status for_each_row_file(const CheckpointFolder &folder, const Manifest &manifest,
                         const std::string &name, const TableParams &params, F &&f) {
    auto look = [&](const std::string &path, const Manifest::Part &known, uint32_t which) {
        RowFile file;
        Status s = opened(path, file.open(path, known, name_of(manifest), name, params));
        return s == DTRAIN_OK ? f(file, which) : s;
    };
    return for_each_file(folder, manifest, name, look);
}

// Opens and checks each file of a dense or sparse table and calls f(file, number).
template <class F>
Status for_each_part(const CheckpointFolder &folder, const Manifest &manifest,
                     const std::string &name, const TableParams &params, F &&f) {
    return is_sparse(params) ? for_each_row_file(folder, manifest, name, params, f)
                             : for_each_shard(folder, manifest, name, params, f);
}

// Finishes a gradual copy. Its memory is populated first, so that no page faults happen under the
// lock, except those of values that change before that.
Status finish_copy(const ArchiveJob &job, const Copying &copying) {
    const std::shared_ptr<GradualCopy> copy = job.copy();
    for (const GradualCopy::Target &target : copy->targets())
        for (uint64_t at = 0; at < target.bytes; at += populated_bytes)
            if (const uint64_t bytes = std::min(populated_bytes, target.bytes - at);
                !copying.populate(*target.memory, at, bytes))
                return fail(
                    DTRAIN_ERR_NO_MEMORY,
                    "no memory to copy table \"%s\" for the checkpoint: an array takes %llu bytes, "
                    "but only %llu were available",
                    job.name.c_str(), static_cast<unsigned long long>(target.bytes),
                    static_cast<unsigned long long>(at));
    auto state = GradualCopy::State::going;
    while (state == GradualCopy::State::going)
        copying.turn([&] { state = copy->advance(turn_bytes); });
    if (state == GradualCopy::State::done) return DTRAIN_OK;
    if (!copy->why().empty())
        return fail(DTRAIN_ERR_DEVICE, "table \"%s\" could not be copied for the checkpoint: %s",
                    job.name.c_str(), copy->why().c_str());
    return fail(DTRAIN_ERR_CANCELED, "table \"%s\" was destroyed while it was being saved",
                job.name.c_str());
}

Status save(const ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk,
            const Copying &copying) {
    if (Status s = finish_copy(job, copying); s != DTRAIN_OK) return s;
    const CheckpointName own = {job.request.argument, job.request.first};
    if (Status s = folder.make(own.step); s != DTRAIN_OK) return s;
    const std::string path =
        folder.shard_path(own.step, job.name, job.server, job.partition.servers());
    const RowImage *rows = job.image->as_rows();
    return rows != nullptr ? write_rows(disk, path, job.name, own, *rows)
                           : write_shard(disk, path, job.name, own, *job.image->as_shard());
}

// Reads the manifest of the checkpoint that the worker has chosen.
Status read_chosen(const ArchiveJob &job, const CheckpointFolder &folder, Manifest &manifest) {
    Status s = folder.read(job.request.argument, manifest);
    if (s == DTRAIN_ERR_NOT_FOUND)
        return fail_within(DTRAIN_ERR_CONFIG, "the worker sees a checkpoint that is not here, so "
                                              "checkpoint.directory is not one shared folder");
    if (s == DTRAIN_OK && manifest.id != job.request.first)
        return fail(DTRAIN_ERR_CONFIG,
                    "%s is another checkpoint than the worker sees, so checkpoint.directory is not "
                    "one shared folder, or the checkpoint has just been replaced",
                    folder.folder(manifest.step).c_str());
    return s;
}

Status restore_shard(const ArchiveJob &job, ShardImage &image, const CheckpointFolder &folder,
                     const Manifest &manifest, const Reserve &reserve) {
    const uint64_t needed = ShardImage::bytes_of(image.params, image.part.count()),
                   granted = reserve(needed);
    if (granted < needed) return fail_for(Reason::memory_limit, needed, granted);
    if (!image.allocate()) return fail(DTRAIN_ERR_NO_MEMORY, "no memory for the restored table");
    return for_each_shard(
        folder, manifest, job.name, image.params, [&](ShardFile &file, uint32_t) -> Status {
            return overlap(file.part(), image.part) ? file.read(image) : DTRAIN_OK;
        });
}

Status restore_rows(const ArchiveJob &job, RowImage &image, const CheckpointFolder &folder,
                    const Manifest &manifest, const Reserve &reserve) {
    return for_each_row_file(folder, manifest, job.name, image.params,
                             [&](RowFile &file, uint32_t) {
                                 return file.read(job.partition, job.server, image, reserve);
                             });
}

Status restore(const ArchiveJob &job, const CheckpointFolder &folder, const Reserve &reserve) {
    Manifest manifest;
    if (Status s = read_chosen(job, folder, manifest); s != DTRAIN_OK) return s;
    uint64_t &updates = job.image->updates;
    updates = UINT64_MAX; // becomes the minimum over the files
    RowImage *rows = job.image->as_rows();
    const Status s = rows != nullptr
                         ? restore_rows(job, *rows, folder, manifest, reserve)
                         : restore_shard(job, *job.image->as_shard(), folder, manifest, reserve);
    if (updates == UINT64_MAX) updates = 0; // no file was read
    return s;
}

} // namespace

Status check_parts(const CheckpointFolder &folder, const Manifest &manifest,
                   const std::string &name, const TableParams &params) {
    return for_each_part(folder, manifest, name, params,
                         [](auto &, uint32_t) -> Status { return DTRAIN_OK; });
}

Status add_parts(const CheckpointFolder &folder, Manifest &manifest, const std::string &name,
                 uint32_t parts, const TableParams &params) {
    manifest.tables.push_back({escaped(name), std::vector<Manifest::Part>(parts)});
    for (uint32_t i = 0; i < parts; ++i)
        if (const std::string path = folder.shard_path(manifest.step, name, i, parts);
            access(path.c_str(), F_OK) != 0)
            return fail(DTRAIN_ERR_CONFIG,
                        "server %u has written its part of table \"%s\" to a folder that this "
                        "process does not see (%s is not there): checkpoint.directory must name "
                        "one shared folder on all servers and here",
                        i, name.c_str(), path.c_str());
    std::vector<Manifest::Part> &known = manifest.tables.back().parts;
    std::vector<uint64_t> clocks(parts);
    Status s =
        for_each_part(folder, manifest, name, params, [&](auto &file, uint32_t which) -> Status {
            known[which] = file.seal();
            clocks[which] = file.heading().clock;
            return DTRAIN_OK;
        });
    if (s != DTRAIN_OK || params.consistency != DTRAIN_BSP) return s;
    const auto [least, most] = std::minmax_element(clocks.begin(), clocks.end());
    if (*least == *most) return DTRAIN_OK;
    return fail(DTRAIN_ERR_PEER,
                "table \"%s\": a worker was lost when clock %llu had ended on server %td but not "
                "on server %td; let the remaining workers change the table's mode "
                "(dtrain_table_set_consistency with the communicator of dtrain_comm_shrink), then "
                "save",
                name.c_str(), static_cast<unsigned long long>(*most - 1), most - clocks.begin(),
                least - clocks.begin());
}

void run(ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk, const Reserve &reserve,
         const Copying &copying) {
    set_error_text("");
    try { // the standard library throws if memory is lacking
        job.status = job.request.kind == RequestKind::save ? save(job, folder, disk, copying)
                                                           : restore(job, folder, reserve);
        if (job.request.kind == RequestKind::save && job.status == DTRAIN_OK)
            job.lent = job.image->lend();
    } catch (const std::bad_alloc &) {
        job.status = fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
    }
    if (job.status != DTRAIN_OK) job.text = error_text();
}

ArchiveThread::ArchiveThread(const std::string &folder, data::Disk &disk, Owner owner)
    : folder_(folder, disk), disk_(disk), owner_(std::move(owner)) {}

void ArchiveThread::stop() {
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

Status ArchiveThread::start(std::unique_ptr<ArchiveJob> job) {
    std::lock_guard lock(mutex_);
    if (ending_) return fail(DTRAIN_ERR_CANCELED, "the server is leaving the job");
    if (!thread_.joinable())
        if (Status s = start_thread(thread_, "dtrain-disk", [this] { work(); }); s != DTRAIN_OK)
            return s;
    jobs_.push_back(std::move(job));
    changed_.notify_one();
    return DTRAIN_OK;
}

// Sleeps as long as it held the lock, so that other threads can have the lock at least half of the
// time; a little, if an accelerator was not ready.
void ArchiveThread::take_turn(ArchiveJob &job, const std::function<void()> &work) const {
    int64_t took = 0;
    owner_.locked([&] {
        const int64_t begin = monotonic_clock().now_ns();
        work();
        took = monotonic_clock().now_ns() - begin;
    });
    job.longest_turn = std::max(job.longest_turn, took);
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::max(took, least_rest)));
}

void ArchiveThread::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
        if (ending_) return;
        std::unique_ptr<ArchiveJob> job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        Copying copying;
        copying.turn = [&](const auto &work) { take_turn(*job, work); };
        auto reserve = [&](uint64_t bytes) { return owner_.reserve(*job, bytes); };
        run(*job, folder_, disk_, reserve, copying);
        owner_.done(std::move(job));
        lock.lock();
    }
}

} // namespace dtrain::ps
