// Requests that save a table to checkpoints and restore it.
// SPDX-License-Identifier: Apache-2.0
//
// A restore has two phases, so that one or several tables are restored on all servers or on none.
// First each server reads and checks its part and keeps it apart. When all have done so, the worker
// tells them to take it over, which cannot fail; otherwise it tells them to drop it. If the worker
// leaves or is lost, its restore is dropped. Requests may arrive out of order: their sequence
// numbers tell which restore they belong to.
#include "ps/server/server_table.h"

#include <algorithm>

namespace dtrain::ps {

std::unique_ptr<ArchiveJob> ServerTable::make_job(const RequestHeader &header) const {
    auto job = std::make_unique<ArchiveJob>();
    job->request = header;
    job->name = identity_.name;
    job->server = identity_.server;
    job->partition = partition_;
    return job;
}

bool ServerTable::begin(std::unique_ptr<ArchiveJob> job, Answered::Entry &entry, Responses &out) {
    const RequestHeader header = job->request;
    entry.progress = Progress::parked;
    const Status s = archive_->start(std::move(job));
    if (s != DTRAIN_OK) tell(header, entry, s, error_text(), out);
    return s == DTRAIN_OK;
}

void ServerTable::archive(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (archive_ == nullptr)
        return tell(header, entry, DTRAIN_ERR_CONFIG,
                    "it has no folder for checkpoints: set its option checkpoint.directory", out);
    if (header.kind == RequestKind::save) return save(header, entry, out);
    restore(header, entry, out);
}

void ServerTable::save(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (broken_.status != DTRAIN_OK)
        return tell(header, entry, broken_.status, broken_.text.c_str(), out);
    const Verdict verdict = may_go_on(header);
    if (verdict == Verdict::wait) return park(header, entry);
    const bool ssp = identity_.params.consistency == DTRAIN_SSP;
    // If a worker was lost, the clock will never be complete; then the current values are saved.
    const bool last = verdict == Verdict::lost || (ssp && clocks_.any_lost());
    if (!last && verdict == Verdict::passed && ssp)
        return finish(header, entry, {Reason::not_at_clock, {header.clock, 0}}, out);
    if (!last && verdict != Verdict::go)
        return finish(header, entry, refusal(verdict, header), out);
    const uint64_t clock = last && collects(identity_.params) ? clocks_.applied() : header.clock;

    const uint64_t copy = rows_ != nullptr ? rows_->image_bytes() : shard_->image_bytes();
    if (copy > room_) return finish(header, entry, {Reason::memory_limit, {copy, room_}}, out);
    std::unique_ptr<ArchiveJob> job = make_job(header);
    if (rows_ != nullptr) {
        job->rows = rows_->image();
        if (job->rows != nullptr) job->rows->clock = clock;
    } else {
        job->image = shard_->image();
        if (job->image != nullptr) job->image->clock = clock;
    }
    if (job->rows == nullptr && job->image == nullptr)
        return finish(header, entry, {Reason::no_memory, {bytes(), 0}}, out);
    job->charged = copy;
    const std::shared_ptr<GradualCopy> copying = job->copy();
    if (!begin(std::move(job), entry, out)) return end(*copying);
    copies_ += copy;
    room_ -= copy;
}

void ServerTable::restore(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    Member &member = members_[header.worker];
    if (header.sequence < member.restores_from)
        return finish(header, entry, {Reason::canceled}, out);
    if (restore_ && !restores(header.worker))
        return finish(header, entry, {Reason::restoring, {restore_->worker, 0}}, out);
    drop_restore(); // the worker has abandoned its earlier restore
    std::unique_ptr<ArchiveJob> job = make_job(header);
    if (rows_ != nullptr)
        job->rows = std::make_unique<RowImage>(identity_.params);
    else
        job->image = std::make_unique<ShardImage>(identity_.params, shard_->part());
    if (!begin(std::move(job), entry, out)) return;
    member.restores_from = header.sequence;
    restore_ = Restore{header.worker, header.sequence, nullptr};
}

uint64_t ServerTable::reserve(ArchiveJob &job, uint64_t bytes) {
    if (!restores_by(job.request)) return 0;
    job.charged += bytes;
    copies_ += bytes;
    return bytes;
}

void ServerTable::end(GradualCopy &copy) {
    if (rows_ != nullptr)
        rows_->end(copy);
    else
        shard_->end(copy);
}

void ServerTable::on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out) {
    const RequestHeader header = job->request;
    const bool current = restores_by(header);
    Member &member = members_[header.worker];
    Answered::Entry *entry = nullptr;
    if (member.answered != nullptr) entry = member.answered->parked(header.sequence);
    const bool kept = current && entry != nullptr && job->status == DTRAIN_OK;
    const uint64_t needed = !kept                  ? 0
                            : job->rows != nullptr ? job->rows->store.memory()
                                                   : job->charged;
    if (const std::shared_ptr<GradualCopy> copy = job->copy()) end(*copy);
    if (job->lent && rows_ != nullptr) rows_->keep(job->rows);
    if (job->lent && shard_ != nullptr) shard_->keep(job->image);
    copies_ -= job->charged - needed;
    job->charged = needed;
    if (current && !kept) restore_.reset();
    if (entry == nullptr) return; // the request was canceled
    if (job->status != DTRAIN_OK) return tell(header, *entry, job->status, job->text.c_str(), out);
    const bool given_up = header.kind == RequestKind::restore && !kept;
    if (kept) restore_->read = std::move(job);
    finish(header, *entry, {given_up ? Reason::canceled : Reason::none}, out);
}

void ServerTable::adopt(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (!restores(header.worker, header.sequence) || restore_->read == nullptr)
        return finish(header, entry, {Reason::not_read}, out);
    if (rows_ != nullptr)
        rows_->adopt(std::move(*restore_->read->rows));
    else
        shard_->adopt(std::move(*restore_->read->image));
    drop_restore();
    broken_ = {};
    finish(header, entry, {}, out);
    release(out); // requests that wait for a version
}

void ServerTable::discard(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    uint64_t &from = members_[header.worker].restores_from;
    from = std::max(from, header.sequence);
    if (restores(header.worker, header.sequence)) drop_restore();
    finish(header, entry, {}, out);
}

void ServerTable::drop_restore() {
    if (restore_ && restore_->read != nullptr) copies_ -= restore_->read->charged;
    restore_.reset();
}

} // namespace dtrain::ps
