// The phases of a restore, and the charges of saves and restores.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/checkpoint_session.h"

#include <algorithm>
#include <utility>

namespace dtrain::ps {

Answer CheckpointSession::admit_restore(const RequestHeader &header) {
    if (header.sequence < restores_from_[header.worker]) return {Reason::canceled};
    if (restore_ && !restores(header.worker)) return {Reason::restoring, {restore_->worker, 0}};
    drop();
    return {};
}

void CheckpointSession::begin_restore(const RequestHeader &header) {
    restores_from_[header.worker] = header.sequence;
    restore_ = Restore{header.worker, header.sequence, nullptr};
}

uint64_t CheckpointSession::reserve(ArchiveJob &job, uint64_t bytes) {
    if (!is_current(job.request)) return 0;
    job.charged += bytes;
    bytes_ += bytes;
    return bytes;
}

bool CheckpointSession::end(ArchiveJob &job, bool awaited) {
    const bool current = is_current(job.request);
    const bool kept = current && awaited && job.status == DTRAIN_OK;
    const uint64_t needed = kept ? job.image->kept_bytes(job.charged) : 0;
    bytes_ -= job.charged - needed;
    job.charged = needed;
    if (current && !kept) restore_.reset();
    return kept;
}

std::unique_ptr<ArchiveJob> CheckpointSession::take(const RequestHeader &header) {
    if (!restores(header.worker, header.sequence) || restore_->read == nullptr) return nullptr;
    std::unique_ptr<ArchiveJob> read = std::move(restore_->read);
    bytes_ -= read->charged;
    restore_.reset();
    return read;
}

void CheckpointSession::discard(const RequestHeader &header) {
    uint64_t &from = restores_from_[header.worker];
    from = std::max(from, header.sequence);
    if (restores(header.worker, header.sequence)) drop();
}

void CheckpointSession::leave(uint32_t worker) {
    if (restores(worker)) drop();
}

void CheckpointSession::drop() {
    if (restore_ && restore_->read != nullptr) bytes_ -= restore_->read->charged;
    restore_.reset();
}

} // namespace dtrain::ps
