// A server's record of one worker's requests for a table, which ensures that each is done once.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/delivery.h"
#include "ps/table/protocol.h"

#include <array>
#include <cstdint>
#include <memory>

namespace dtrain::ps {

enum class Progress : uint8_t {
    unseen,
    held,   // came too early and was dropped; the server will ask for it again
    parked, // waits here: for a clock, for other workers, or for the disk
    done
};

class Answered {
  public:
    struct Entry {
        uint64_t sequence = 0;
        uint64_t numbers[2] = {0, 0}; // of the answer
        Reason reason = Reason::none; // of the answer
        Progress progress = Progress::unseen;
        bool refused = false;             // it was not a valid request for this table
        bool pushed = false;              // its push was handled; its pull may still wait
        bool spoilt = false;              // its push was dropped because of a NaN or an infinity
        std::weak_ptr<Delivery> delivery; // of an answer whose values are still to come
    };

    // forgotten: too old to be in the record (a correct client has its answer); window: too far
    // ahead.
    Reason check(uint64_t sequence) const {
        if (sequence + request_window <= newest_) return Reason::forgotten;
        const Entry &entry = entries_[sequence % request_window];
        bool waiting = entry.progress == Progress::held || entry.progress == Progress::parked;
        bool ahead = sequence > newest_ + request_window || (waiting && sequence > entry.sequence);
        return ahead ? Reason::window : Reason::none;
    }
    // The entry of a sequence number that check() accepted. A new one replaces one that is out of
    // the window.
    Entry &entry(uint64_t sequence) {
        Entry &entry = entries_[sequence % request_window];
        if (entry.sequence != sequence) entry = {.sequence = sequence, .delivery = {}};
        if (sequence > newest_) newest_ = sequence;
        return entry;
    }
    // The entry of a parked request; nullptr: the request is not parked any more.
    Entry *parked(uint64_t sequence) {
        Entry &entry = entries_[sequence % request_window];
        return entry.sequence == sequence && entry.progress == Progress::parked ? &entry : nullptr;
    }
    // Whether all requests before this one have been handled or parked, so that none of them can
    // still come.
    bool in_order(uint64_t sequence) const {
        const uint64_t oldest = sequence > request_window ? sequence - request_window : 1;
        for (uint64_t s = oldest; s < sequence; ++s) {
            const Entry &entry = entries_[s % request_window];
            const bool known = entry.refused || entry.progress == Progress::done ||
                               entry.progress == Progress::parked;
            if (entry.sequence < s || (entry.sequence == s && !known)) return false;
        }
        return true;
    }
    uint64_t newest() const { return newest_; }

  private:
    std::array<Entry, request_window> entries_;
    uint64_t newest_ = 0;
};

} // namespace dtrain::ps
