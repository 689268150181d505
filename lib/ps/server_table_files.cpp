// Requests that move a table to checkpoints and back.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server_table.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {

void ServerTable::archive(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    const bool saves = header.kind == RequestKind::save;
    if (archive_ == nullptr)
        return tell(header, entry, DTRAIN_ERR_CONFIG,
                    "it has no folder for checkpoints: set its option checkpoint.directory", out);
    if (saves && broken_.status != DTRAIN_OK)
        return tell(header, entry, broken_.status, broken_.text.c_str(), out);
    const Verdict verdict = saves ? may_go_on(header) : Verdict::go;
    if (verdict == Verdict::wait) return park(header, entry);
    if (verdict == Verdict::passed && identity_.params.consistency == DTRAIN_SSP)
        return finish(header, entry, {Reason::not_at_clock, {header.clock, 0}}, out);
    if (verdict != Verdict::go) return finish(header, entry, refusal(verdict, header), out);

    uint64_t copy = 0;
    if (saves) copy = rows_ != nullptr ? rows_->image_bytes() : shard_->image_bytes();
    if (copy > room_) return finish(header, entry, {Reason::memory_limit, {copy, room_}}, out);
    std::unique_ptr<ArchiveJob> job = make_job(header);
    if (job == nullptr) return finish(header, entry, {Reason::no_memory, {bytes(), 0}}, out);
    job->charged = copy;
    entry.progress = Progress::parked;
    if (Status s = archive_->start(std::move(job)); s != DTRAIN_OK)
        return tell(header, entry, s, error_text(), out);
    copies_ += copy;
    room_ -= copy;
}

std::unique_ptr<ArchiveJob> ServerTable::make_job(const RequestHeader &header) const {
    auto job = std::make_unique<ArchiveJob>();
    job->request = header;
    job->name = identity_.name;
    job->server = identity_.server;
    job->partition = partition_;
    const bool saves = header.kind == RequestKind::save;
    if (rows_ != nullptr) {
        job->rows = saves ? rows_->image() : std::make_unique<RowImage>(identity_.params);
        if (!saves) job->rows->store.set_limit(rows_->limit());
        if (job->rows != nullptr) job->rows->clock = header.clock;
    } else {
        job->image = saves ? shard_->image()
                           : std::make_unique<ShardImage>(identity_.params, shard_->part());
        if (job->image != nullptr) job->image->clock = header.clock;
    }
    return job->rows != nullptr || job->image != nullptr ? std::move(job) : nullptr;
}

void ServerTable::on_archived(ArchiveJob &job, Responses &out) {
    const RequestHeader &header = job.request;
    copies_ -= std::min(job.charged, copies_);
    Member &member = members_[header.worker];
    Answered::Entry *entry = nullptr;
    if (member.answered != nullptr) entry = member.answered->parked(header.sequence);
    if (entry == nullptr) return; // nobody waits for it any more
    if (job.status != DTRAIN_OK) return tell(header, *entry, job.status, job.text.c_str(), out);
    if (header.kind == RequestKind::restore && rows_ != nullptr)
        rows_->adopt(std::move(*job.rows));
    else if (header.kind == RequestKind::restore)
        shard_->adopt(std::move(*job.image));
    if (header.kind == RequestKind::restore) broken_ = {};
    finish(header, *entry, {}, out);
    release(out); // what waits for a version
}

} // namespace dtrain::ps
