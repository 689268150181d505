// Computes and checks the MACs of the handshake.
// SPDX-License-Identifier: Apache-2.0
#include "wire/auth.h"

#include <algorithm>
#include <cstring>
#include <sodium.h>

namespace dtrain::wire {
namespace {

constexpr uint8_t magic[8] = {'d', 't', 'r', 'a', 'i', 'n', 0, 2};
constexpr uint8_t flag_secret = 1, verdict_fine = 1, verdict_wrong_secret = 2;
// Offsets of the fields in hello and answer.
constexpr size_t flags_at = 8, meeting_at = 10, member_at = 12, nonce_at = 16, offer_at = 48,
                 mac_at = offer_at + sizeof(protection::Offer);

Mac hmac(std::string_view secret, std::initializer_list<std::span<const uint8_t>> parts) {
    uint8_t key[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(key, reinterpret_cast<const uint8_t *>(secret.data()), secret.size());
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key, sizeof key);
    for (std::span<const uint8_t> part : parts)
        crypto_auth_hmacsha256_update(&state, part.data(), part.size());
    Mac mac;
    crypto_auth_hmacsha256_final(&state, mac.data());
    sodium_memzero(key, sizeof key);
    return mac;
}

bool equal(const Mac &mac, const uint8_t *other) {
    return sodium_memcmp(mac.data(), other, mac.size()) == 0;
}

} // namespace

Handshake::Handshake(Side side, const Credentials &own, int32_t self, int32_t peer,
                     const Nonce &nonce, uint16_t meeting)
    : own_(own), side_(side), self_(self), peer_(peer), meeting_(meeting), nonce_(nonce) {
    if (!own.secret.empty()) guard_ = std::make_unique<protection::Guard>(own.demand);
}

std::unique_ptr<protection::Guard> Handshake::take_guard() {
    if (guard_ != nullptr && guard_->level() == protection::Level::none) guard_.reset();
    return std::move(guard_);
}

Status Handshake::advance(std::vector<uint8_t> &in, std::vector<uint8_t> &out) {
    auto take = [&](auto &whole) {
        if (in.size() < whole.size()) return false;
        std::copy_n(in.begin(), whole.size(), whole.begin());
        in.erase(in.begin(), in.begin() + long(whole.size()));
        return true;
    };
    if (stage_ == Stage::start) {
        stage_ = side_ == Side::dialler ? Stage::answer : Stage::hello;
        if (side_ == Side::dialler) {
            write_head(hello_.data());
            out.insert(out.end(), hello_.begin(), hello_.end());
        }
    }
    Status s = DTRAIN_IN_PROGRESS;
    if (stage_ == Stage::hello) {
        // The first bytes show that it is not a handshake, so there is no need to wait for the
        // rest.
        if (!std::equal(magic, magic + std::min(in.size(), sizeof magic), in.begin()))
            return fail(DTRAIN_ERR_CORRUPT, "not a dtrain control connection");
        if (take(hello_)) s = on_hello(out);
    } else if (stage_ == Stage::answer) {
        if (take(answer_)) s = on_answer(out);
    } else if (stage_ == Stage::proof) {
        if (take(proof_)) s = on_proof();
    }
    return s;
}

Status Handshake::on_hello(std::vector<uint8_t> &out) {
    stage_ = Stage::proof;
    Status head = check_head(hello_.data());
    write_head(answer_.data()); // sent even on failure: its flags tell the dialing side why
    Mac mac = mac_of(Side::listener);
    std::copy(mac.begin(), mac.end(), answer_.begin() + mac_at);
    out.insert(out.end(), answer_.begin(), answer_.end());
    return head == DTRAIN_OK ? DTRAIN_IN_PROGRESS : head;
}

Status Handshake::on_answer(std::vector<uint8_t> &out) {
    stage_ = Stage::done;
    if (Status s = check_head(answer_.data()); s != DTRAIN_OK) return s;
    proof_.fill(0);
    bool same = own_.secret.empty() || equal(mac_of(Side::listener), answer_.data() + mac_at);
    if (same) {
        Mac mac = mac_of(Side::dialler);
        std::copy(mac.begin(), mac.end(), proof_.begin());
    }
    proof_[sizeof(Mac)] = same ? verdict_fine : verdict_wrong_secret;
    out.insert(out.end(), proof_.begin(), proof_.end());
    if (!same)
        return fail(DTRAIN_ERR_AUTH, "the other side has a different secret; give every process of "
                                     "the job the same one (option secret or secret.file)");
    return agree();
}

Status Handshake::on_proof() {
    stage_ = Stage::done;
    bool same = own_.secret.empty() || equal(mac_of(Side::dialler), proof_.data());
    if (same && proof_[sizeof(Mac)] == verdict_fine) return agree();
    return fail(DTRAIN_ERR_AUTH, "wrong secret");
}

// Only now, since both heads are proven to be what each side has sent.
Status Handshake::agree() {
    if (guard_ == nullptr) return DTRAIN_OK;
    const bool dialler = side_ == Side::dialler;
    protection::Offer peer;
    std::memcpy(&peer, (dialler ? answer_.data() : hello_.data()) + offer_at, sizeof peer);
    uint8_t transcript[hello_bytes + mac_at];
    std::memcpy(transcript, hello_.data(), hello_bytes);
    std::memcpy(transcript + hello_bytes, answer_.data(), mac_at);
    return guard_->agree(dialler ? protection::Role::initiator : protection::Role::responder,
                         own_.secret.text(), peer, false,
                         transcript); // as demanded, even inside a host
}

Status Handshake::check_head(const uint8_t *head) {
    if (std::memcmp(head, magic, sizeof magic) != 0)
        return fail(DTRAIN_ERR_CORRUPT, "not a dtrain control connection");
    uint16_t meeting;
    std::memcpy(&meeting, head + meeting_at, sizeof meeting);
    if (meeting != meeting_)
        return fail(DTRAIN_ERR_BUSY, side_ == Side::dialler ? "another job listens there"
                                                            : "it looks for another job");
    int32_t member;
    std::memcpy(&member, head + member_at, sizeof member);
    if (member < 0 || member >= int32_t(max_members) || (peer_ != anybody && peer_ != member))
        return fail(DTRAIN_ERR_CORRUPT, "another member (%d) answered", member);
    peer_ = member;
    bool theirs = (head[flags_at] & flag_secret) != 0;
    if (theirs != !own_.secret.empty())
        return fail(DTRAIN_ERR_AUTH,
                    theirs ? "the other side has a secret and this process has none (option secret "
                             "or secret.file)"
                           : "this process has a secret (option secret or secret.file) and the "
                             "other side has none");
    return DTRAIN_OK;
}

void Handshake::write_head(uint8_t *head) const {
    std::memcpy(head, magic, sizeof magic);
    head[flags_at] = own_.secret.empty() ? 0 : flag_secret;
    std::memcpy(head + meeting_at, &meeting_, sizeof meeting_);
    std::memcpy(head + member_at, &self_, sizeof self_);
    std::memcpy(head + nonce_at, nonce_.data(), nonce_.size());
    if (guard_ != nullptr)
        std::memcpy(head + offer_at, &guard_->offer(), sizeof(protection::Offer));
}

Mac Handshake::mac_of(Side signer) const {
    if (own_.secret.empty()) return Mac{};
    static constexpr uint8_t listener[] = "listener", dialler[] = "dialler";
    std::span<const uint8_t> label = signer == Side::listener ? std::span<const uint8_t>(listener)
                                                              : std::span<const uint8_t>(dialler);
    return hmac(own_.secret.text(), {label, hello_, std::span(answer_).first(mac_at)});
}

} // namespace dtrain::wire
