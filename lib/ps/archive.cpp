// SPDX-License-Identifier: Apache-2.0
#include "ps/archive.h"

#include "engine/thread.h"

#include <new>

namespace dtrain::ps {
namespace {

Status save(ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk) {
    const uint64_t step = job.request.argument;
    if (Status s = folder.begin(step); s != DTRAIN_OK) return s;
    return write_shard(disk, folder.shard_path(step, job.name, job.server, job.servers), job.name,
                       step, *job.image);
}

Status restore(ArchiveJob &job, const CheckpointFolder &folder) {
    ShardImage &image = *job.image;
    if (!image.allocate()) return fail(DTRAIN_ERR_NO_MEMORY, "no memory for what is restored");
    image.updates = UINT64_MAX; // the lowest of the files
    Status s = for_each_shard(folder, job.request.argument, job.name, image.params,
                              [&](ShardFile &file) -> Status {
                                  bool needed = intersect(file.range(), image.range).count > 0;
                                  return needed ? file.read(image) : DTRAIN_OK;
                              });
    if (image.updates == UINT64_MAX) image.updates = 0; // the part is empty
    return s;
}

} // namespace

Status for_each_shard(const CheckpointFolder &folder, uint64_t step, const std::string &name,
                      const TableParams &params, const std::function<Status(ShardFile &)> &f) {
    Manifest manifest;
    if (Status s = folder.read(step, manifest); s != DTRAIN_OK) return s;
    const Manifest::Table *table = manifest.find(name);
    if (table == nullptr)
        return fail(DTRAIN_ERR_NOT_FOUND, "checkpoint %llu in %s has no table \"%s\"",
                    static_cast<unsigned long long>(step), folder.path().c_str(), name.c_str());
    uint64_t next = 0;
    for (uint32_t i = 0; i < table->shards; ++i) {
        ShardFile file;
        const std::string path = folder.shard_path(step, name, i, table->shards);
        Status s = file.open(path, name, params);
        if (s == DTRAIN_ERR_NOT_FOUND) s = fail_within(DTRAIN_ERR_CORRUPT, "a file is missing");
        if (s != DTRAIN_OK) return s;
        if (file.range().first != next)
            return fail(DTRAIN_ERR_CORRUPT, "%s: it begins at element %llu, not at %llu",
                        path.c_str(), static_cast<unsigned long long>(file.range().first),
                        static_cast<unsigned long long>(next));
        next = file.range().end();
        if (s = f(file); s != DTRAIN_OK) return s;
    }
    if (next == params.length) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CORRUPT, "checkpoint %llu in %s ends at element %llu of table \"%s\"",
                static_cast<unsigned long long>(step), folder.path().c_str(),
                static_cast<unsigned long long>(next), name.c_str());
}

void run(ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk) {
    set_error_text("");
    try { // the standard library's
        job.status =
            job.request.kind == RequestKind::save ? save(job, folder, disk) : restore(job, folder);
    } catch (const std::bad_alloc &) {
        job.status = fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
    }
    if (job.status != DTRAIN_OK) job.text = error_text();
}

ArchiveThread::ArchiveThread(const std::string &folder, data::Disk &disk,
                             std::function<void(std::unique_ptr<ArchiveJob>)> done)
    : folder_(folder, disk), disk_(disk), done_(std::move(done)) {}

void ArchiveThread::stop() {
    if (!thread_.joinable()) return;
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

Status ArchiveThread::start(std::unique_ptr<ArchiveJob> job) {
    if (!thread_.joinable())
        if (Status s = engine::start_thread(thread_, "dtrain-disk", [this] { work(); });
            s != DTRAIN_OK)
            return s;
    {
        std::lock_guard lock(mutex_);
        jobs_.push_back(std::move(job));
    }
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
        run(*job, folder_, disk_);
        done_(std::move(job));
        lock.lock();
    }
}

} // namespace dtrain::ps
