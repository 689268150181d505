// Unpacks requests for the server, and sends its answers alone or in packs.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/server_port.h"

#include "ps/node/network_wire.h"

#include <cstring>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr uint64_t buffer_bytes = sizeof(RequestHeader) + chunk_bytes;
static_assert(buffer_bytes >= most_pack_bytes);

} // namespace

ServerPort::ServerPort(engine::Agent &agent, engine::Mesh &mesh, Server &server, uint32_t self,
                       uint32_t workers)
    : agent_(agent), mesh_(mesh), server_(server), self_(self), workers_(workers),
      inbox_(agent, mesh.inbound(request_tag(0)), buffer_bytes,
             [this](uint32_t worker, const char *message, uint64_t bytes) {
                 if (worker < workers_) take(worker, message, bytes);
             }),
      packs_(agent, mesh, packed_answers_tag(self), server.peers()), headers_(agent) {}

Status ServerPort::open() { return inbox_.open(); }

void ServerPort::close() {
    inbox_.close();
    packs_.close();
    for (Answer *answer : held_back_) release(*answer);
    held_back_.clear();
    for (Answer &answer : answers_) mesh_.withdraw(answer.response.worker, &answer);
}

void ServerPort::take(uint32_t worker, const char *message, uint64_t bytes) {
    if (is_pack(message, bytes)) {
        look_ahead(message, bytes);
        unpack<RequestHeader>(message, bytes,
                              [&](const RequestHeader &header, const char *payload, uint64_t size) {
                                  server_.on_request(worker, header, payload, size, responses_);
                              });
    } else if (bytes >= sizeof(RequestHeader)) {
        RequestHeader header;
        std::memcpy(&header, message, sizeof header);
        server_.on_request(worker, header, message + sizeof header, bytes - sizeof header,
                           responses_);
    }
}

// Each request for a row or a few misses the caches twice; those of one pack do so together.
void ServerPort::look_ahead(const char *message, uint64_t bytes) {
    RequestHeader first;
    constexpr uint64_t before = sizeof pack_begin + sizeof(uint64_t); // the first request's header
    if (bytes < 2 * (before + sizeof first)) return;
    std::memcpy(&first, message + before, sizeof first);
    if (!Server::prefetches(first.kind)) return; // a worker seldom mixes kinds
    for (const bool rows : {false, true})
        unpack<RequestHeader>(message, bytes,
                              [&](const RequestHeader &header, const char *payload, uint64_t size) {
                                  server_.prefetch(header, payload, size, rows);
                              });
}

int ServerPort::send() {
    size_t kept = 0; // swaps elements, so that responses_ reuses its memory
    const size_t before = responses_.size();
    for (Response &response : responses_) {
        if (response.worker != self_ && response.is_ready())
            send(std::move(response));
        else
            std::swap(responses_[kept++], response); // LocalPath delivers this process's own
    }
    responses_.resize(kept);
    packs_.flush();
    return int(before - kept);
}

void ServerPort::send(Response &&response) {
    // A worker may ask for a pack although the answer is too large.
    response.packed = response.packed && response.bytes <= most_packed;
    if (response.packed && pack(response)) return;
    if (spare_.empty()) spare_.emplace_back().header = headers_.take<ResponseHeader>();
    answers_.splice(answers_.end(), spare_, spare_.begin());
    Answer &answer = answers_.back();
    answer.place = std::prev(answers_.end());
    answer.done = &answered;
    answer.port = this;
    answer.response = std::move(response);
    answer.charge = Charge(server_.peers()[answer.response.worker], sizeof answer);
    if (!post(answer)) held_back_.push_back(&answer);
}

int ServerPort::retry() {
    if (inbox_.deaf()) inbox_.retry();
    int done = packs_.flush();
    if (held_back_.empty()) return done;
    auto left = held_back_.begin();
    for (Answer *answer : held_back_)
        if (!post(*answer)) *left++ = answer;
    done += int(held_back_.end() - left);
    held_back_.erase(left, held_back_.end());
    return done;
}

bool ServerPort::post(Answer &answer) {
    Response &r = answer.response;
    if (r.packed) {
        const bool taken = pack(r);
        if (taken) release(answer);
        return taken;
    }
    register_memory(r);
    *answer.header = r.header;
    dtrain_tp_iov_t iov[] = {{.addr = answer.header, .len = sizeof r.header, .mr = nullptr},
                             {.addr = const_cast<void *>(r.payload), // is only read
                              .len = r.bytes,
                              .mr = nullptr}};
    Status s = mesh_.send(r.worker, answer_tag(self_, r.header.table, r.header.sequence), iov,
                          r.bytes > 0 ? 2 : 1, &answer);
    if (s == DTRAIN_ERR_BUSY) return false;
    if (s == DTRAIN_OK) {
        pending_++;
        return true;
    }
    release(answer); // the worker will repeat the request, or it is lost
    return true;
}

void ServerPort::register_memory(const Response &r) {
    const bool large = r.hold != nullptr && r.bytes > most_packed;
    if (large && mesh_.device(r.worker)->has(DTRAIN_TP_CAP_PUT))
        r.hold->register_once(agent_.devices());
}

bool ServerPort::pack(const Response &r) {
    return packs_.add(r.worker, r.header, r.payload, r.bytes) == DTRAIN_OK;
}

void ServerPort::release(Answer &answer) {
    answer.response.hold.reset();
    answer.response.charge = {};
    answer.charge = {};
    spare_.splice(spare_.end(), answers_, answer.place);
}

void ServerPort::answered(engine::Completion *self, const dtrain_tp_done_t &) {
    Answer &answer = *static_cast<Answer *>(self);
    ServerPort &port = *answer.port;
    port.pending_--;
    port.release(answer);
}

} // namespace dtrain::ps
