// Requests that save a table to checkpoints and restore it.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include <utility>

namespace dtrain::ps {
namespace {

constexpr char no_folder[] =
    "it has no folder for checkpoints: set its option checkpoint.directory";

} // namespace

LegacyPart ServerTable::legacy() {
    if (kept_) return *kept_; // the table was refused meanwhile
    if (made()) apply_clocks();
    LegacyPart part;
    part.params = TableParams(identity_.params);
    part.params.placement.among = identity_.params.placement.servers_of(identity_.servers);
    part.server = identity_.server;
    part.image = has_values() ? storage_->begin_image() : nullptr;
    if (part.image == nullptr || part.image->copy == nullptr) return part;
    auto state = GradualCopy::State::going;
    while (state == GradualCopy::State::going) state = part.image->copy->advance(GradualCopy::rest);
    storage_->end(*part.image->copy);
    if (state != GradualCopy::State::done || !part.image->finish()) part.image.reset();
    return part;
}

std::optional<LegacyPart> ServerTable::take_back() {
    if (!kept_ && inherited_ && opening_failed_) kept_ = legacy();
    return std::exchange(kept_, std::nullopt);
}

std::unique_ptr<ArchiveJob> ServerTable::make_job(const RequestHeader &header,
                                                  std::unique_ptr<Image> image) const {
    auto job = std::make_unique<ArchiveJob>();
    job->request = header;
    job->name = identity_.name;
    job->server = identity_.server;
    job->partition = check_.partition();
    job->image = std::move(image);
    return job;
}

bool ServerTable::begin(std::unique_ptr<ArchiveJob> job, Answered::Entry &entry, Responses &out) {
    const RequestHeader header = job->request;
    entry.progress = Progress::parked;
    const Status s = archive_->start(std::move(job));
    if (s != DTRAIN_OK) tell(header, entry, s, error_text(), out);
    return s == DTRAIN_OK;
}

void ServerTable::save(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (archive_ == nullptr) return tell(header, entry, DTRAIN_ERR_CONFIG, no_folder, out);
    if (broken_.status != DTRAIN_OK)
        return tell(header, entry, broken_.status, broken_.text.c_str(), out);
    if (const std::string *why = storage_->broken(); why != nullptr)
        return tell(header, entry, DTRAIN_ERR_DEVICE, why->c_str(), out);
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

    const uint64_t copy = storage_->image_bytes();
    if (copy > room_) return finish(header, entry, {Reason::memory_limit, {copy, room_}}, out);
    std::unique_ptr<Image> image = storage_->begin_image();
    if (image == nullptr) return finish(header, entry, {Reason::no_memory, {bytes(), 0}}, out);
    image->clock = clock;
    const std::shared_ptr<GradualCopy> copying = image->copy;
    std::unique_ptr<ArchiveJob> job = make_job(header, std::move(image));
    job->charged = copy;
    if (!begin(std::move(job), entry, out)) return storage_->end(*copying);
    checkpoints_.begin_save(copy);
    room_ -= copy;
}

void ServerTable::restore(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (archive_ == nullptr) return tell(header, entry, DTRAIN_ERR_CONFIG, no_folder, out);
    const Answer admitted = checkpoints_.admit_restore(header);
    if (admitted.reason != Reason::none) return finish(header, entry, admitted, out);
    if (begin(make_job(header, storage_->blank_image()), entry, out))
        checkpoints_.begin_restore(header);
}

void ServerTable::on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out) {
    const RequestHeader header = job->request;
    Answered::Entry *entry = workers_[header.worker].log.parked(header.sequence);
    const bool kept = checkpoints_.end(*job, entry != nullptr);
    if (const std::shared_ptr<GradualCopy> copy = job->copy(); copy != nullptr && made())
        storage_->end(*copy);
    if (job->lent && made()) storage_->keep(job->image);
    if (entry == nullptr) return; // the request was canceled
    if (job->status != DTRAIN_OK) return tell(header, *entry, job->status, job->text.c_str(), out);
    const bool given_up = header.kind == RequestKind::restore && !kept;
    if (kept) checkpoints_.keep(std::move(job));
    finish(header, *entry, {given_up ? Reason::canceled : Reason::none}, out);
}

void ServerTable::adopt(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    const std::unique_ptr<ArchiveJob> read = checkpoints_.take(header);
    if (read == nullptr) return finish(header, entry, {Reason::not_read}, out);
    storage_->adopt(std::move(*read->image));
    lost_ = false;
    broken_ = {};
    finish(header, entry, {storage_->broken() != nullptr ? Reason::device : Reason::none}, out);
    release(out); // requests that wait for a version
}

void ServerTable::discard(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    checkpoints_.discard(header);
    finish(header, entry, {}, out);
}

} // namespace dtrain::ps
