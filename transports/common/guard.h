// The core's guard of one connection: makes records of what is sent, and opens those that arrive.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <array>
#include <memory>
#include <utility>

namespace dtrain::tp {

using Offer =
    std::array<uint8_t, DTRAIN_TP_OFFER_LEN>; // zero: from a side that can protect nothing

inline constexpr size_t record_header = DTRAIN_TP_RECORD_HEADER;
inline constexpr size_t record_overhead = DTRAIN_TP_RECORD_HEADER + DTRAIN_TP_RECORD_TAG;
inline constexpr size_t max_payload = DTRAIN_TP_RECORD_MAX;

class Guard {
  public:
    Guard() = default; // protects nothing
    Guard(Guard &&other) noexcept
        : host_(other.host_), core_(std::exchange(other.core_, nullptr)), level_(other.level_) {}
    Guard &operator=(Guard &&other) noexcept {
        std::swap(host_, other.host_);
        std::swap(core_, other.core_);
        std::swap(level_, other.level_);
        return *this;
    }
    ~Guard() {
        if (core_) host_->guard_free(core_);
    }

    // Begins; the offer stays zero if the job has no secret, or the core is too old for guards.
    // Host must outlive the guard. DTRAIN_ERR_NO_MEMORY, with the text.
    dtrain_status_t begin(const Host &host, Offer *offer_p) {
        *offer_p = {};
        host_ = &host;
        const dtrain_status_t status = host.guard_new(offer_p->data(), &core_);
        return status == DTRAIN_ERR_UNSUPPORTED ? DTRAIN_OK : status;
    }
    bool begun() const { return host_; }
    // After both proofs. place: DTRAIN_TP_INITIATOR, DTRAIN_TP_INSIDE. DTRAIN_ERR_AUTH, with the
    // text: one side demands what the other cannot do.
    dtrain_status_t agree(uint32_t place, const Offer &peer, const void *transcript, size_t len) {
        if (!core_) return DTRAIN_OK; // a peer that demands protection ends the connection
        const dtrain_status_t status =
            host_->guard_agree(core_, place, peer.data(), transcript, len, &level_);
        if (level_ == DTRAIN_TP_PLAIN) host_->guard_free(std::exchange(core_, nullptr));
        return status;
    }

    // After agree(): whether the connection carries records.
    explicit operator bool() const { return core_; }
    bool encrypts() const { return level_ == DTRAIN_TP_ENCRYPTED; }
    // Makes a record of the len bytes at record + record_header; returns its length.
    size_t seal(uint8_t *record, size_t len) {
        host_->guard_seal(core_, record, len);
        return len + record_overhead;
    }
    // The length of the payload; 0: no record has such a header.
    static size_t payload_length(const uint8_t *record) {
        uint32_t length;
        memcpy(&length, record, sizeof length);
        length = le32toh(length);
        return length <= max_payload ? length : 0;
    }
    // False: not the peer's next record; the connection must end.
    [[nodiscard]] bool open(uint8_t *record, size_t len) {
        return host_->guard_open(core_, record, len) == DTRAIN_OK;
    }

  private:
    const Host *host_ = nullptr;
    dtrain_tp_guard_t *core_ = nullptr;
    uint32_t level_ = DTRAIN_TP_PLAIN;
};

} // namespace dtrain::tp
