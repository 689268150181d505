// Computes and checks the MACs of the handshake.
// SPDX-License-Identifier: Apache-2.0
#include "wire/auth.h"

#include "base/random.h"

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
    : own_(own), side_(side), self_(self), peer_(peer), meeting_(meeting), nonce_(nonce) {}

Handshake::Handshake(Side side, const Credentials &own, int32_t self, int32_t peer,
                     uint16_t meeting)
    : Handshake(side, own, self, peer, Nonce{}, meeting) {
    fresh_ = true;
}

std::unique_ptr<protection::Guard> Handshake::take_guard() {
    if (guard_ != nullptr && guard_->level() == protection::Level::none) guard_.reset();
    return std::move(guard_);
}

// Keys cost something, so a peer that says nothing gets none.
void Handshake::begin() {
    if (fresh_) random_bytes(nonce_.data(), nonce_.size());
    if (!own_.secret.empty()) guard_ = std::make_unique<protection::Guard>(own_.demand);
}

Status Handshake::advance(std::vector<uint8_t> &in, std::vector<uint8_t> &out) {
    if (stage_ == Stage::start) {
        stage_ = side_ == Side::dialler ? Stage::answer : Stage::hello;
        if (side_ == Side::dialler) {
            begin();
            const Head hello = own_head();
            out.insert(out.end(), hello.begin(), hello.end());
        }
    }
    if (stage_ == Stage::done) return DTRAIN_IN_PROGRESS;
    // The first bytes show that it is not a handshake, so there is no need to wait for the rest.
    if (stage_ == Stage::hello &&
        !std::equal(magic, magic + std::min(in.size(), sizeof magic), in.begin()))
        return fail(DTRAIN_ERR_CORRUPT, "not a dtrain control connection");
    const size_t length = stage_ == Stage::hello    ? head_bytes
                          : stage_ == Stage::answer ? answer_bytes
                                                    : proof_bytes;
    if (in.size() < length) return DTRAIN_IN_PROGRESS;
    std::array<uint8_t, answer_bytes> message{};
    std::copy_n(in.begin(), length, message.begin());
    in = std::vector<uint8_t>(in.begin() + long(length), in.end()); // erase() would keep the memory
    if (stage_ == Stage::proof) return on_proof(message.data());
    std::copy_n(message.begin(), head_bytes, other_.begin());
    return stage_ == Stage::hello ? on_hello(out) : on_answer(message.data() + mac_at, out);
}

Status Handshake::on_hello(std::vector<uint8_t> &out) {
    const Status head = check_head();
    stage_ = head == DTRAIN_OK ? Stage::proof : Stage::done;
    if (head == DTRAIN_OK) begin();
    // Sent even on failure: its flags tell the dialing side why, which then asks for no MAC.
    const Head answer = own_head();
    const Mac mac = head == DTRAIN_OK ? mac_of(Side::listener) : Mac{};
    out.reserve(out.size() + answer_bytes);
    out.insert(out.end(), answer.begin(), answer.end());
    out.insert(out.end(), mac.begin(), mac.end());
    return head == DTRAIN_OK ? DTRAIN_IN_PROGRESS : head;
}

Status Handshake::on_answer(const uint8_t *mac, std::vector<uint8_t> &out) {
    stage_ = Stage::done;
    if (Status s = check_head(); s != DTRAIN_OK) return s;
    const bool same = own_.secret.empty() || equal(mac_of(Side::listener), mac);
    const Mac proof = same ? mac_of(Side::dialler) : Mac{};
    out.insert(out.end(), proof.begin(), proof.end());
    out.push_back(same ? verdict_fine : verdict_wrong_secret);
    if (!same)
        return fail(DTRAIN_ERR_AUTH, "the other side has a different secret; give every process of "
                                     "the job the same one (option secret or secret.file)");
    return agree();
}

Status Handshake::on_proof(const uint8_t *proof) {
    stage_ = Stage::done;
    const bool same = own_.secret.empty() || equal(mac_of(Side::dialler), proof);
    if (same && proof[sizeof(Mac)] == verdict_fine) return agree();
    return fail(DTRAIN_ERR_AUTH, "wrong secret");
}

// Only now, since both heads are proven to be what each side has sent.
Status Handshake::agree() {
    if (guard_ == nullptr) return DTRAIN_OK;
    const bool dialler = side_ == Side::dialler;
    protection::Offer peer;
    std::memcpy(&peer, other_.data() + offer_at, sizeof peer);
    const Head own = own_head();
    std::array<Head, 2> transcript = {own, other_};
    if (!dialler) std::swap(transcript[0], transcript[1]);
    return guard_->agree(dialler ? protection::Role::initiator : protection::Role::responder,
                         own_.secret.text(), peer, false, // as demanded, even inside a host
                         std::span(transcript[0].data(), sizeof transcript));
}

Status Handshake::check_head() {
    const uint8_t *const head = other_.data();
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

Handshake::Head Handshake::own_head() const {
    Head head{};
    std::memcpy(head.data(), magic, sizeof magic);
    head[flags_at] = own_.secret.empty() ? 0 : flag_secret;
    std::memcpy(head.data() + meeting_at, &meeting_, sizeof meeting_);
    std::memcpy(head.data() + member_at, &self_, sizeof self_);
    std::memcpy(head.data() + nonce_at, nonce_.data(), nonce_.size());
    if (guard_ != nullptr)
        std::memcpy(head.data() + offer_at, &guard_->offer(), sizeof(protection::Offer));
    return head;
}

Mac Handshake::mac_of(Side signer) const {
    if (own_.secret.empty()) return Mac{};
    static constexpr uint8_t listener[] = "listener", dialler[] = "dialler";
    std::span<const uint8_t> label = signer == Side::listener ? std::span<const uint8_t>(listener)
                                                              : std::span<const uint8_t>(dialler);
    const Head own = own_head();
    const bool first = side_ == Side::dialler;
    return hmac(own_.secret.text(), {label, first ? own : other_, first ? other_ : own});
}

} // namespace dtrain::wire
