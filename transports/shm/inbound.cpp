// Accepts one peer, proves the secret, and answers requests for windows.
// SPDX-License-Identifier: Apache-2.0
#include "shm/inbound.h"

#include <cerrno>

namespace dtrain::shm {

Status Inbound::start() {
    Status status = shared_.poller.add(shared_.host, fd_, this);
    if (status != DTRAIN_OK) return status;
    state_ = State::greeting;
    shared_.greetings++;
    return DTRAIN_OK;
}

void Inbound::close() {
    if (state_ == State::idle || state_ == State::closed) return;
    if (is_stranger()) shared_.greetings--;
    if (is_up()) receiver_.fail();
    state_ = State::closed;
    shared_.poller.remove(fd_);
    fd_.reset();
}

void Inbound::lose(Status status) {
    log_loss(shared_.host, transcript_.connector.pid, status);
    close();
}

void Inbound::receive() {
    if (!receiver_.receive()) lose(DTRAIN_ERR_TRANSPORT);
}

void Inbound::on_readable() {
    while (state_ != State::closed) {
        std::byte message[socket_message_limit];
        Fd passed;
        ssize_t n = receive_message(fd_, message, sizeof message, passed);
        if (n == -EAGAIN) return;
        bool intact = n > 0 || !is_up() || receiver_.receive_last();
        Status status = !intact        ? DTRAIN_ERR_TRANSPORT
                        : n == 0       ? DTRAIN_ERR_PEER
                        : n == -EMFILE ? DTRAIN_ERR_LIMIT
                        : n < 0        ? DTRAIN_ERR_TRANSPORT
                                       : on_message(message, static_cast<size_t>(n), passed);
        if (status != DTRAIN_OK) lose(status);
    }
}

Status Inbound::on_message(const std::byte *message, size_t len, Fd &passed) {
    Hello hello;
    if (state_ == State::greeting && parse(message, len, hello)) return on_hello(hello);
    Proof proof;
    if (state_ == State::proving && parse(message, len, proof)) return on_proof(proof, passed);
    WindowAsk ask;
    if (state_ == State::up && parse(message, len, ask)) return on_window_ask(ask);
    return DTRAIN_ERR_TRANSPORT;
}

Status Inbound::on_hello(const Hello &hello) {
    transcript_.connector = hello.from;
    transcript_.connector_nonce = hello.nonce;
    nonce_address_ = hello.nonce_address;
    if (hello.version != layout_version) return DTRAIN_ERR_TRANSPORT;
    Challenge challenge;
    shared_.host.random(challenge.nonce.data(), challenge.nonce.size());
    transcript_.acceptor_nonce = challenge.nonce;
    if (shared_.copies_directly) challenge.nonce_address = address_of(transcript_.acceptor_nonce);
    Status status = prove(shared_.host, Role::acceptor, transcript_, challenge.mac);
    if (status != DTRAIN_OK) return status;
    if (!send_message(fd_, &challenge, sizeof challenge)) return DTRAIN_ERR_PEER;
    state_ = State::proving;
    return DTRAIN_OK;
}

Status Inbound::on_proof(const Proof &proof, Fd &passed) {
    Status status = verify(shared_.host, Role::connector, transcript_, proof.mac);
    if (status != DTRAIN_OK) return status;
    Segment segment;
    status = Segment::attach(shared_.host, passed, sizeof(ChannelMemory), true, segment);
    if (status != DTRAIN_OK) return status;
    PeerProcess process;
    if (shared_.copies_directly && nonce_address_ != 0)
        process.find(fd_, nonce_address_, transcript_.connector_nonce);
    Ready ready;
    ready.in_reach = process.is_in_reach();
    if (!send_message(fd_, &ready, sizeof ready)) return DTRAIN_ERR_PEER;
    receiver_.open(std::move(segment), transcript_.connector.name, process);
    state_ = State::up;
    shared_.greetings--;
    return DTRAIN_OK;
}

Status Inbound::on_window_ask(const WindowAsk &ask) {
    const Window *window = shared_.windows.front();
    while (window != nullptr && !(window->fd() && window->id() == ask.id))
        window = shared_.windows.next(window);
    WindowGive give;
    give.id = ask.id;
    if (window == nullptr)
        give.status = DTRAIN_ERR_NOT_FOUND;
    else if (window->shape() != WindowShape{ask.bytes, ask.members})
        give.status = DTRAIN_ERR_MISMATCH;
    int pass = give.status == DTRAIN_OK ? window->fd().get() : -1;
    if (send_message(fd_, &give, sizeof give, pass)) return DTRAIN_OK;
    // The socket is full only if the peer keeps asking without reading the answers.
    return errno == EAGAIN ? DTRAIN_ERR_TRANSPORT : DTRAIN_ERR_PEER;
}

} // namespace dtrain::shm
