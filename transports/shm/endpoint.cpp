// Connects to one peer, sends, and asks for its windows.
// SPDX-License-Identifier: Apache-2.0
#include "shm/endpoint.h"

namespace dtrain::shm {
Status Endpoint::start() {
    Status status = connect_to(shared_.host, transcript_.acceptor.name, fd_);
    if (status != DTRAIN_OK) return status;
    if (!is_peer_trusted(fd_))
        return shared_.host.fail(DTRAIN_ERR_AUTH,
                                 "shm: another user listens at the peer's address");
    if (!shared_.done.reserve()) return DTRAIN_ERR_NO_MEMORY; // for CONNECT
    if (!shared_.done.reserve()) {                            // for PEER_LOST
        shared_.done.unreserve();
        return DTRAIN_ERR_NO_MEMORY;
    }
    Hello hello;
    shared_.host.random(hello.nonce.data(), hello.nonce.size());
    hello.from = shared_.own;
    transcript_.connector_nonce = hello.nonce;
    if (shared_.copies_directly) hello.nonce_address = address_of(transcript_.connector_nonce);
    status = shared_.poller.add(shared_.host, fd_, this);
    if (status == DTRAIN_OK && !send_message(fd_, &hello, sizeof hello)) {
        status = fail_errno(shared_.host, errno, "sending the hello to the peer");
        shared_.poller.remove(fd_);
    }
    if (status != DTRAIN_OK) {
        shared_.done.unreserve();
        shared_.done.unreserve();
        return status;
    }
    state_ = State::greeting;
    shared_.greetings++;
    return DTRAIN_OK;
}

Endpoint::~Endpoint() {
    if (state_ != State::idle && state_ != State::lost) end(DTRAIN_ERR_CANCELED);
    while (Ask *ask = asks_.pop_front()) delete ask;
}

Status Endpoint::send(uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie) {
    uint64_t length;
    if (!tp::iov_length(iov, n, &length) || length > message_limit)
        return shared_.host.fail(DTRAIN_ERR_INVALID, "shm: a message has a bad list of %u pieces",
                                 n);
    if (state_ == State::lost)
        return shared_.host.fail(DTRAIN_ERR_PEER, "shm: the connection to process %u is lost",
                                 transcript_.acceptor.pid);
    Status status = sender_.post(tag, iov, n, length, cookie);
    if (status != DTRAIN_OK) return status;
    advance();
    shared_.stir();
    return DTRAIN_OK;
}

void Endpoint::withdraw(uint64_t cookie) {
    if (!is_pending()) return;
    sender_.withdraw(cookie);
    advance();
}

void Endpoint::advance() {
    if (state_ == State::up && !sender_.advance()) lose(DTRAIN_ERR_TRANSPORT);
}

void Endpoint::on_readable() {
    while (state_ != State::lost) {
        alignas(8) std::byte message[socket_message_limit];
        Fd passed;
        ssize_t n = receive_message(fd_, message, sizeof message, passed);
        if (n == -EAGAIN) return;
        Status status = n == 0         ? DTRAIN_ERR_PEER
                        : n == -EMFILE ? DTRAIN_ERR_LIMIT
                        : n < 0        ? DTRAIN_ERR_TRANSPORT
                                       : on_message(message, static_cast<size_t>(n), passed);
        if (status != DTRAIN_OK) lose(status);
    }
}

Status Endpoint::on_message(const std::byte *message, size_t len, Fd &passed) {
    Challenge challenge;
    if (state_ == State::greeting && parse(message, len, challenge)) return on_challenge(challenge);
    Ready ready;
    if (state_ == State::proving && parse(message, len, ready)) return on_ready(ready);
    WindowGive give;
    if (state_ == State::up && parse(message, len, give)) return on_window(give, passed);
    return DTRAIN_ERR_TRANSPORT;
}

Status Endpoint::on_challenge(const Challenge &challenge) {
    transcript_.acceptor_nonce = challenge.nonce;
    Status status = verify(shared_.host, Role::acceptor, transcript_, challenge.mac);
    if (status != DTRAIN_OK) return status;
    Proof proof;
    status = prove(shared_.host, Role::connector, transcript_, proof.mac);
    if (status != DTRAIN_OK) return status;
    Fd memory;
    if (shared_.copies_directly && challenge.nonce_address != 0)
        peer_process_.find(fd_, challenge.nonce_address, challenge.nonce);
    status = Segment::create(shared_.host, sizeof(ChannelMemory), "", segment_, memory);
    if (status != DTRAIN_OK) return status;
    if (!send_message(fd_, &proof, sizeof proof, memory.get())) return DTRAIN_ERR_PEER;
    state_ = State::proving;
    return DTRAIN_OK;
}

Status Endpoint::on_ready(const Ready &ready) {
    state_ = State::up;
    shared_.greetings--;
    if (ready.in_reach != 1) peer_process_ = {};
    sender_.open(std::move(segment_), transcript_.acceptor.name, peer_process_, shared_.distance);
    shared_.done.push({cookie_, 0, 0, 0, DTRAIN_OK, DTRAIN_TP_CONNECT, 0});
    advance();
    return DTRAIN_OK;
}

Status Endpoint::ask_window(const Name &id, WindowShape shape, Fd &out) {
    if (state_ == State::greeting || state_ == State::proving) return DTRAIN_ERR_BUSY;
    Ask *ask = asks_.front();
    while (ask != nullptr && ask->id != id) ask = asks_.next(ask);
    if (ask == nullptr) return start_ask(id, shape);
    if (!ask->answered) return DTRAIN_ERR_BUSY;
    Status status = ask->status;
    out = std::move(ask->fd);
    asks_.remove(ask);
    delete ask;
    if (status == DTRAIN_OK) return DTRAIN_OK;
    return shared_.host.fail(
        status, "shm: process %u does not share that window: it %s", transcript_.acceptor.pid,
        status == DTRAIN_ERR_NOT_FOUND  ? "has no window of this name"
        : status == DTRAIN_ERR_MISMATCH ? "created it with another size or number of members"
                                        : "is gone");
}

Status Endpoint::start_ask(const Name &id, WindowShape shape) {
    if (state_ == State::lost)
        return shared_.host.fail(DTRAIN_ERR_PEER, "shm: the connection to process %u is lost",
                                 transcript_.acceptor.pid);
    WindowAsk message;
    message.members = shape.members;
    message.bytes = shape.bytes;
    message.id = id;
    Ask *ask = new (std::nothrow) Ask;
    if (ask == nullptr) return DTRAIN_ERR_NO_MEMORY;
    if (send_message(fd_, &message, sizeof message)) { // otherwise the socket is full: try later
        ask->id = id;
        asks_.push_back(ask);
        shared_.greetings++;
    } else {
        delete ask;
    }
    return DTRAIN_ERR_BUSY;
}

Status Endpoint::on_window(const WindowGive &give, Fd &passed) {
    const bool known = give.status == DTRAIN_OK || give.status == DTRAIN_ERR_NOT_FOUND ||
                       give.status == DTRAIN_ERR_MISMATCH;
    if (!known) return DTRAIN_ERR_TRANSPORT;
    for (Ask *ask = asks_.front(); ask != nullptr; ask = asks_.next(ask))
        if (ask->id == give.id && !ask->answered) {
            ask->fd = std::move(passed);
            settle(*ask, give.status);
            return DTRAIN_OK;
        }
    return DTRAIN_ERR_TRANSPORT;
}

void Endpoint::settle(Ask &ask, Status status) {
    if (ask.answered) return;
    ask.answered = true;
    ask.status = status;
    shared_.greetings--;
}

void Endpoint::lose(Status status) {
    log_loss(shared_.host, transcript_.acceptor.pid, status);
    end(status);
}

// Completes everything pending and CONNECT, or PEER_LOST, unless this side ended the connection.
void Endpoint::end(Status status) {
    bool was_up = state_ == State::up;
    state_ = State::lost;
    shared_.poller.remove(fd_);
    fd_.reset();
    sender_.fail(status);
    for (Ask *ask = asks_.front(); ask != nullptr; ask = asks_.next(ask))
        settle(*ask, DTRAIN_ERR_PEER);
    if (!was_up) {
        shared_.greetings--;
        shared_.done.push({cookie_, 0, 0, 0, status, DTRAIN_TP_CONNECT, 0});
    } else if (status != DTRAIN_ERR_CANCELED) {
        shared_.done.push({cookie_, 0, 0, 0, status, DTRAIN_TP_PEER_LOST, 0});
        return;
    }
    shared_.done.unreserve(); // PEER_LOST will not be reported
}

} // namespace dtrain::shm
