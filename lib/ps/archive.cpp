// SPDX-License-Identifier: Apache-2.0
#include "ps/archive.h"

#include "engine/thread.h"
#include "ps/row_file.h"
#include "ps/shard_file.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace dtrain::ps {
namespace {

// f(path) for each file of the table in the checkpoint, in their order, until it fails.
template <class F>
Status for_each_file(const CheckpointFolder &folder, uint64_t step, const std::string &name,
                     F &&f) {
    Manifest manifest;
    if (Status s = folder.read(step, manifest); s != DTRAIN_OK) return s;
    const Manifest::Table *table = manifest.find(name);
    if (table == nullptr)
        return fail(DTRAIN_ERR_NOT_FOUND, "checkpoint %llu in %s has no table \"%s\"",
                    static_cast<unsigned long long>(step), folder.path().c_str(), name.c_str());
    for (uint32_t i = 0; i < table->shards; ++i) {
        Status s = f(folder.shard_path(step, name, i, table->shards));
        if (s == DTRAIN_ERR_NOT_FOUND) s = fail_within(DTRAIN_ERR_CORRUPT, "a file is missing");
        if (s != DTRAIN_OK) return s;
    }
    return DTRAIN_OK;
}

bool overlap(const Part &a, const Part &b) {
    uint64_t shared = 0;
    for (size_t i = 0; i < a.ranges(); ++i)
        b.for_each_overlap(a.range(i), [&](const Range &both, uint64_t) { shared += both.count; });
    return shared > 0;
}

// Each element of the table is in one of the ranges, which are firsts and ends.
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

// f(file) for each shard of a dense table, opened and checked.
template <class F>
Status for_each_shard(const CheckpointFolder &folder, uint64_t step, const std::string &name,
                      const TableParams &params, F &&f) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    Status s = for_each_file(folder, step, name, [&](const std::string &path) -> Status {
        ShardFile file;
        if (Status opened = file.open(path, name, params); opened != DTRAIN_OK) return opened;
        for (size_t i = 0; i < file.part().ranges(); ++i) {
            const Range &range = file.part().range(i);
            ranges.emplace_back(range.first, range.end());
        }
        return f(file);
    });
    if (s != DTRAIN_OK) return s;
    s = check_cover(ranges, params.length);
    return s == DTRAIN_OK ? s
                          : fail_within(s, "checkpoint %llu in %s, table \"%s\"",
                                        static_cast<unsigned long long>(step),
                                        folder.path().c_str(), name.c_str());
}

template <class F>
Status for_each_row_file(const CheckpointFolder &folder, uint64_t step, const std::string &name,
                         const TableParams &params, F &&f) {
    return for_each_file(folder, step, name, [&](const std::string &path) -> Status {
        RowFile file;
        Status s = file.open(path, name, params);
        return s == DTRAIN_OK ? f(file) : s;
    });
}

Status save(const ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk) {
    const uint64_t step = job.request.argument;
    if (Status s = folder.begin(step); s != DTRAIN_OK) return s;
    const std::string path = folder.shard_path(step, job.name, job.server, job.partition.servers());
    return job.rows != nullptr ? write_rows(disk, path, job.name, step, *job.rows)
                               : write_shard(disk, path, job.name, step, *job.image);
}

Status restore_shard(const ArchiveJob &job, const CheckpointFolder &folder,
                     const Reserve &reserve) {
    ShardImage &image = *job.image;
    const uint64_t needed = ShardImage::bytes_of(image.params, image.part.count()),
                   granted = reserve(needed);
    if (granted < needed) return fail_for(Reason::memory_limit, needed, granted);
    if (!image.allocate()) return fail(DTRAIN_ERR_NO_MEMORY, "no memory for what is restored");
    return for_each_shard(
        folder, job.request.argument, job.name, image.params, [&](ShardFile &file) {
            return overlap(file.part(), image.part) ? file.read(image) : DTRAIN_OK;
        });
}

Status restore_rows(const ArchiveJob &job, const CheckpointFolder &folder, const Reserve &reserve) {
    return for_each_row_file(
        folder, job.request.argument, job.name, job.rows->params,
        [&](RowFile &file) { return file.read(job.partition, job.server, *job.rows, reserve); });
}

Status restore(const ArchiveJob &job, const CheckpointFolder &folder, const Reserve &reserve) {
    uint64_t &updates = job.rows != nullptr ? job.rows->updates : job.image->updates;
    updates = UINT64_MAX; // the lowest of the files
    Status s = job.rows != nullptr ? restore_rows(job, folder, reserve)
                                   : restore_shard(job, folder, reserve);
    if (updates == UINT64_MAX) updates = 0; // the part is empty
    return s;
}

} // namespace

Status check_parts(const CheckpointFolder &folder, uint64_t step, const std::string &name,
                   const TableParams &params) {
    auto fine = [](auto &) { return DTRAIN_OK; };
    return is_sparse(params) ? for_each_row_file(folder, step, name, params, fine)
                             : for_each_shard(folder, step, name, params, fine);
}

void run(ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk, const Reserve &reserve) {
    set_error_text("");
    try { // the standard library's
        job.status = job.request.kind == RequestKind::save ? save(job, folder, disk)
                                                           : restore(job, folder, reserve);
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
    if (ending_) return fail(DTRAIN_ERR_CANCELED, "the server leaves");
    if (!thread_.joinable())
        if (Status s = engine::start_thread(thread_, "dtrain-disk", [this] { work(); });
            s != DTRAIN_OK)
            return s;
    jobs_.push_back(std::move(job));
    changed_.notify_one();
    return DTRAIN_OK;
}

void ArchiveThread::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
        if (ending_) return;
        std::unique_ptr<ArchiveJob> job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        run(*job, folder_, disk_, [&](uint64_t bytes) { return owner_.reserve(*job, bytes); });
        owner_.done(std::move(job));
        lock.lock();
    }
}

} // namespace dtrain::ps
