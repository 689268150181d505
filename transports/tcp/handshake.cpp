// The handshake of one connection: from connect() or accept() until both sides trust each other.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/handshake.h"

#include "tcp/path.h"

#include <cerrno>
#include <cstring>
#include <endian.h>
#include <sys/socket.h>

namespace dtrain::tcp {
namespace {

constexpr uint32_t confirmation = 0; // on the wire

} // namespace

Handshake::Step Handshake::step(const tp::Host &host) {
    Phase before;
    do { // while one phase leads to the next
        before = phase_;
        switch (phase_) {
        case Phase::connect: step_ = on_connected(host); break;
        case Phase::hello: step_ = on_hello(host); break;
        case Phase::verdict:
        case Phase::last_verdict: step_ = on_verdict(); break;
        case Phase::reply: step_ = on_reply(); break;
        case Phase::reply_proof: step_ = on_reply_proof(host); break;
        case Phase::proof: step_ = on_proof(); break;
        case Phase::confirmation: step_ = on_confirmation(); break;
        case Phase::decide: break;
        }
    } while (step_ == Step::wait && phase_ != before);
    return step_;
}

// Keys cost something, so a peer that says nothing gets none.
Handshake::Step Handshake::offer(const tp::Host &host) {
    own_.path = path_of(host, fd_.get(), role_);
    if (guard_.begin(host, &own_.offer) == DTRAIN_OK) return Step::wait;
    return fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
}

Handshake::Step Handshake::on_connected(const tp::Host &host) {
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) return system_error(error);
    if (offer(host) == Step::failed) return Step::failed;
    return send(&own_, sizeof own_, Phase::verdict);
}

Handshake::Step Handshake::on_hello(const tp::Host &host) {
    const bool whole = read(&other_, sizeof other_);
    if (step_ == Step::failed) return step_;
    if (!tp::may_be_hello(reinterpret_cast<const uint8_t *>(&other_),
                          whole ? sizeof other_ : have_))
        return fail(DTRAIN_ERR_CORRUPT, "the peer does not use this protocol");
    if (!whole) return Step::wait;
    if (const Verdict verdict = judge(own_, other_); verdict != Verdict::accepted)
        return refuse(verdict);
    if (offer(host) == Step::failed) return Step::failed;
    own_.to = other_.from;
    struct {
        uint32_t verdict;
        Hello hello;
        Proof proof;
    } reply{0, own_, {}};
    static_assert(sizeof reply == 4 + sizeof(Hello) + sizeof(Proof));
    if (!prove_both(host, "tcp", Role::responder, own_, other_, &reply.proof, &expected_))
        return fail(DTRAIN_ERR_AUTH, "signing failed");
    return send(&reply, sizeof reply, Phase::proof);
}

Handshake::Step Handshake::on_verdict() {
    if (!read(&code_, sizeof code_)) return step_;
    const uint32_t code = le32toh(code_);
    if (code > uint32_t(Verdict::last)) return fail(DTRAIN_ERR_CORRUPT, "the answer is not valid");
    const auto verdict = Verdict(code);
    if (verdict == Verdict::duplicate && phase_ == Phase::last_verdict) return Step::duplicate;
    if (verdict != Verdict::accepted) return fail(status_of(verdict), text_of(verdict));
    if (phase_ == Phase::last_verdict)
        return send(&confirmation, sizeof confirmation, phase_) == Step::wait ? Step::done
                                                                              : Step::failed;
    phase_ = Phase::reply;
    return Step::wait;
}

Handshake::Step Handshake::on_reply() {
    if (!read(&other_, sizeof other_)) return step_;
    Verdict verdict = judge(own_, other_);
    if (verdict == Verdict::accepted && other_.from != own_.to) verdict = Verdict::wrong_device;
    if (verdict != Verdict::accepted) return fail(status_of(verdict), text_of(verdict));
    phase_ = Phase::reply_proof;
    return Step::wait;
}

Handshake::Step Handshake::on_reply_proof(const tp::Host &host) {
    if (!read(proof_.data(), proof_.size())) return step_;
    Proof expected, proof;
    if (!prove_both(host, "tcp", Role::initiator, own_, other_, &proof, &expected))
        return fail(DTRAIN_ERR_AUTH, "signing failed");
    if (!tp::equal_macs(expected.data(), proof_.data()))
        return fail(DTRAIN_ERR_AUTH, text_of(Verdict::wrong_proof));
    const Verdict verdict = protect(guard_, "tcp", Role::initiator, own_, other_);
    if (verdict != Verdict::accepted) return fail(status_of(verdict), text_of(verdict));
    return send(&proof, sizeof proof, Phase::last_verdict);
}

Handshake::Step Handshake::on_proof() {
    if (!read(proof_.data(), proof_.size())) return step_;
    if (!tp::equal_macs(proof_.data(), expected_.data())) return refuse(Verdict::wrong_proof);
    const Verdict verdict = protect(guard_, "tcp", Role::responder, own_, other_);
    if (verdict != Verdict::accepted) return refuse(verdict);
    phase_ = Phase::decide;
    return Step::authentic;
}

Handshake::Step Handshake::answer(Verdict verdict) {
    if (verdict != Verdict::accepted) return step_ = refuse(verdict);
    const uint32_t code = 0;
    return step_ = send(&code, sizeof code, Phase::confirmation);
}

Handshake::Step Handshake::on_confirmation() {
    if (!read(&code_, sizeof code_)) return step_;
    return code_ == confirmation ? Step::done
                                 : fail(DTRAIN_ERR_CORRUPT, "the confirmation is not valid");
}

bool Handshake::read(void *into, size_t len) {
    const ssize_t n = recv(fd_.get(), static_cast<uint8_t *>(into) + have_, len - have_, 0);
    if (n < 0 && errno != EAGAIN && errno != EINTR) step_ = system_error(errno);
    if (n == 0) step_ = fail(DTRAIN_ERR_PEER, "closed during the handshake");
    if (n > 0) have_ += size_t(n);
    if (have_ < len) return false;
    have_ = 0;
    return true;
}

// A new socket accepts these few bytes at once, unless it is broken.
Handshake::Step Handshake::send(const void *bytes, size_t len, Phase next) {
    ssize_t n;
    do n = ::send(fd_.get(), bytes, len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n != ssize_t(len)) return system_error(n < 0 ? errno : ENOBUFS);
    phase_ = next;
    return Step::wait;
}

Handshake::Step Handshake::refuse(Verdict verdict) {
    const uint32_t code = htole32(uint32_t(verdict));
    send(&code, sizeof code, phase_);
    return fail(status_of(verdict), text_of(verdict));
}

Handshake::Step Handshake::fail(dtrain_status_t status, const char *reason) {
    status_ = status;
    reason_ = reason;
    return Step::failed;
}

Handshake::Step Handshake::system_error(int error) {
    fail_errno(error);
    return Step::failed;
}

dtrain_status_t Handshake::fail_errno(int error) {
    status_ = DTRAIN_ERR_PEER;
    switch (error) {
    case ECONNREFUSED: reason_ = "connection refused"; break;
    case EPIPE:
    case ECONNRESET: reason_ = "connection reset"; break;
    case ETIMEDOUT: reason_ = "no answer"; break;
    case ENETUNREACH:
    case EHOSTUNREACH: reason_ = "no route to the host"; break;
    default: status_ = DTRAIN_ERR_IO; reason_ = strerrordesc_np(error);
    }
    return status_;
}

const char *Handshake::timeout_reason() const {
    if (phase_ == Phase::connect) return "no answer within 3 s";
    if (accepted()) return "the peer does not confirm the connection";
    if (!fd_) return text_of(Verdict::duplicate);
    return "the handshake took longer than 3 s";
}

} // namespace dtrain::tcp
