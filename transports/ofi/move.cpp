// The wire over libfabric: memory being moved, in chunks.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/locked_memory.h"
#include "ofi/wire.h"

#include <algorithm>
#include <cstring>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

namespace dtrain::ofi {
namespace {

constexpr uint32_t max_chunks = 4; // of a move at a time

struct RemoteKey {      // sent as it is
    uint64_t start = 0; // of the memory, in its own process
    uint64_t length = 0;
    Target target; // covers all of it
};

} // namespace

const uint32_t rkey_length = sizeof(RemoteKey);

dtrain_status_t Wire::reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) {
    if (mem.mem_type != DTRAIN_MEM_HOST)
        return host_.fail(DTRAIN_ERR_UNSUPPORTED, "ofi: only host memory can be registered");
    int error;
    auto made = Registration::make(secrets_, fabric_, mem.address, mem.length, &error);
    if (!made)
        return host_.fail(error == -FI_ENOMEM ? DTRAIN_ERR_NO_MEMORY : DTRAIN_ERR_TRANSPORT,
                          "ofi: cannot register %llu bytes: %s; %s",
                          static_cast<unsigned long long>(mem.length), fi_strerror(-error),
                          raise_lock_limit);
    made->wire = this;
    if (!registered_.add(made.get()))
        return host_.fail(DTRAIN_ERR_NO_MEMORY, "ofi: no memory for another registration");
    *mr_p = made.release();
    return DTRAIN_OK;
}

void Wire::dereg(dtrain_tp_mr_t *mr) {
    auto *registration = static_cast<Registration *>(mr);
    registered_.remove(registration);
    delete registration;
}

rdm::RegistrationCounts Wire::registrations() const {
    rdm::RegistrationCounts counts{.count = registered_.count(), .bytes = registered_.bytes()};
    cache_.count(&counts);
    return counts;
}

// The caller's registration of the piece, or nullptr.
Registration *Wire::registered(const tp::IovCursor &memory, const uint8_t *piece,
                               uint64_t len) const {
    auto *found = static_cast<Registration *>(registered_.find(memory, piece, len));
    return found && found->is_usable() ? found : nullptr;
}

dtrain_status_t Wire::rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) {
    const auto &registration = *static_cast<Registration *>(mr);
    if (len < sizeof(RemoteKey))
        return host_.fail(DTRAIN_ERR_TRUNCATED, "ofi: a key needs %zu bytes", sizeof(RemoteKey));
    if (!registration.is_usable())
        return host_.fail(DTRAIN_ERR_STATE, "ofi: this registration was lost; make another one");
    const uint64_t start = registration.start, length = registration.length;
    const RemoteKey key{start, length,
                        registration.target(reinterpret_cast<void *>(start), length)};
    memcpy(buf, &key, sizeof key);
    return DTRAIN_OK;
}

Sent Wire::put(rdm::Link *link, Operation *from, uint64_t address, const void *rkey) {
    return start_remote(Move::Kind::put, link, from, address, rkey);
}

Sent Wire::get(rdm::Link *link, Operation *into, uint64_t address, const void *rkey) {
    return start_remote(Move::Kind::get, link, into, address, rkey);
}

Sent Wire::start_remote(Move::Kind kind, rdm::Link *which, Operation *operation, uint64_t address,
                        const void *rkey) {
    auto *link = static_cast<ofi::Link *>(which);
    RemoteKey key;
    memcpy(static_cast<void *>(&key), rkey, sizeof key);
    const uint64_t at = address - key.start, len = operation->memory.remaining();
    if (link->broken.why || at > key.length || len > key.length - at) return Sent::broken;
    if (!len) return Sent::now;
    Move *move = make_move(kind, link, operation);
    if (!move) return Sent::busy;
    move->granted = true;
    move->grant.count = 1;
    move->grant.targets[0] = {key.target.address + at, key.target.key, len};
    hand_over_chunks(move);
    if (!move->failed || move->chunks) return Sent::later;
    moves_.remove(move->name.id); // nothing of it has begun
    move_pool_.put(move);
    return Sent::broken;
}

Move *Wire::make_move(Move::Kind kind, ofi::Link *link, Operation *operation) {
    Move *move = move_pool_.get();
    if (!move) return nullptr;
    if (!moves_.insert(move, &move->name.id)) {
        move_pool_.put(move);
        return nullptr;
    }
    move->kind = kind;
    move->link = link;
    move->operation = operation;
    return move;
}

// Starts as many chunks as libfabric accepts.
void Wire::hand_over_chunks(Move *move) {
    while (!move->failed && move->operation->memory.remaining() && move->chunks < max_chunks)
        if (!start_chunk(move)) break;
}

// Continues the move. False: libfabric accepts no more.
bool Wire::advance(Move *move) {
    if (std::exchange(move->waits, false)) waiting_.remove(move);
    hand_over_chunks(move);
    const bool waits = move->waits;
    if (move->failed && !move->chunks) end(move, false);
    return !waits;
}

// Memory of an operation could not be registered.
void Wire::unregistered(Operation *operation, uint64_t len, int error) {
    operation->failure = DTRAIN_ERR_NO_MEMORY;
    host_.log(DTRAIN_LOG_WARN, "ofi: cannot register %llu bytes of a message: %s; %s",
              static_cast<unsigned long long>(len), fi_strerror(-error), raise_lock_limit);
}

// Returns the descriptor of the memory for the card.
void *Wire::describe(Move *move, uint8_t *piece, uint64_t len, int *error) {
    if (!local_) return nullptr;
    const tp::IovCursor &memory = move->operation->memory;
    if (Registration *given = registered(memory, piece, len)) return given->descriptor();
    auto &own = move->registrations[memory.index()];
    if (!own) own = cache_.hold(piece, len, error);
    if (!own) unregistered(move->operation, len, *error);
    return own ? own->descriptor() : nullptr;
}

// False: nothing more can start now.
bool Wire::start_chunk(Move *move) {
    tp::IovCursor &memory = move->operation->memory;
    const Target &target = move->grant.targets[move->target];
    uint64_t len;
    int error = 0;
    uint8_t *piece = memory.piece(&len);
    void *descriptor = describe(move, piece, len, &error);
    len = std::min({len, target.length - move->offset, chunk_limit_});
    const bool last = move->kind == Move::Kind::bulk && len == memory.remaining();
    // The data announced by the immediate must arrive before it.
    if (last && move->chunks && !fabric_.orders_writes()) return false;
    Chunk *chunk = chunk_pool_.get();
    if (!chunk) return wait(move);
    if (!error) error = hand_over(move, chunk, piece, len, descriptor, last);
    if (error) {
        chunk_pool_.put(chunk);
        return error == -FI_EAGAIN ? wait(move) : fail(move, error);
    }
    move->chunks++;
    chunks_.push_back(chunk);
    lend(move->link);
    traffic_.in_place += len;
    memory.advance(len);
    move->offset += len;
    if (move->offset == target.length) {
        move->target++;
        move->offset = 0;
    }
    return true;
}

int Wire::hand_over(Move *move, Chunk *chunk, void *piece, uint64_t len, void *descriptor,
                    bool last) {
    const Target &target = move->grant.targets[move->target];
    const uint64_t at = target.address + move->offset;
    const fi_addr_t peer = move->link->peer->number;
    fid_ep *ep = fabric_.endpoint.get();
    chunk->kind = Context::Kind::chunk;
    chunk->link = move->link;
    chunk->move = move;
    if (move->kind == Move::Kind::get)
        return int(fi_read(ep, piece, len, descriptor, peer, at, target.key, &chunk->libfabric));
    if (last)
        return int(fi_writedata(ep, piece, len, descriptor, move->grant.transfer, peer, at,
                                target.key, &chunk->libfabric));
    return int(fi_write(ep, piece, len, descriptor, peer, at, target.key, &chunk->libfabric));
}

bool Wire::wait(Move *move) {
    move->waits = true;
    waiting_.push_back(move);
    return false;
}

bool Wire::fail(Move *move, int error) {
    host_.log(DTRAIN_LOG_WARN, "ofi: memory cannot be moved: %s", fi_strerror(-error));
    move->failed = true;
    const Failed failed{.transfer = move->grant.transfer};
    if (move->kind == Move::Kind::bulk) answer(move->link, &failed, sizeof failed);
    return false;
}

// Returns the chunk's move; nullptr if it was the last one of a move that no operation waits for.
Move *Wire::take_back(Chunk *chunk) {
    Move *move = chunk->move;
    chunks_.remove(chunk);
    chunk_pool_.put(chunk);
    if (--move->chunks || move->operation) return move;
    move_pool_.put(move);
    return nullptr;
}

void Wire::on_chunk(Chunk *chunk, int error) {
    Move *move = take_back(chunk);
    if (!move) return;
    move->failed |= error != 0;
    if (!move->operation) return; // more of its chunks will complete
    if (!move->failed && move->operation->memory.remaining()) {
        advance(move);
    } else if (!move->chunks) {
        end(move, !move->failed);
    }
}

void Wire::end(Move *move, bool ok) {
    moves_.remove(move->name.id);
    if (std::exchange(move->waits, false)) waiting_.remove(move);
    Operation *operation = std::exchange(move->operation, nullptr);
    const bool got = move->kind == Move::Kind::get;
    if (!move->chunks) move_pool_.put(move);
    if (got)
        protocol_.on_fetched(operation, ok);
    else
        protocol_.on_sent(operation, ok);
}

} // namespace dtrain::ofi
