// The record of one worker's requests for a table, with the error texts for repeated answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/server/answered.h"
#include "ps/server/peer_memory.h"
#include "ps/table/buffer.h"

#include <cstdint>
#include <map>
#include <memory>

namespace dtrain::ps {

class RequestLog {
  public:
    // The record, which is allocated for the worker's first request.
    Answered &answered() {
        if (answered_ == nullptr) answered_ = std::make_unique<Answered>();
        return *answered_;
    }
    // The entry of a request that is in the record.
    Answered::Entry &entry(uint64_t sequence) { return answered_->entry(sequence); }
    // nullptr: the request is not parked, or the record was cleared.
    Answered::Entry *parked(uint64_t sequence) {
        return answered_ != nullptr ? answered_->parked(sequence) : nullptr;
    }
    bool in_order(uint64_t sequence) const { return answered_->in_order(sequence); }

    // Keeps the text of an answer as long as its request is in the record, and charges it to the
    // worker. False: it does not fit in the worker's limit.
    bool keep_text(uint64_t sequence, std::shared_ptr<const Buffer> text, PeerMemory &memory);
    // The text of a request in the record, which keep_text() has kept.
    const std::shared_ptr<const Buffer> &text(uint64_t sequence) { return texts_[sequence].text; }

    void clear(); // when the worker is gone

  private:
    struct Text {
        std::shared_ptr<const Buffer> text;
        Charge charge;
    };
    std::unique_ptr<Answered> answered_;
    std::map<uint64_t, Text> texts_; // by sequence number
};

} // namespace dtrain::ps
