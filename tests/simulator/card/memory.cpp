// Moves between the memories of two processes.
// SPDX-License-Identifier: Apache-2.0
#include "card/wire.h"

#include "rdm/shared.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <sys/uio.h>

namespace dtrain::card {
namespace {

constexpr int64_t longest_ns = 100'000;        // that a move takes
constexpr int64_t full_socket_ns = 2'000'000;  // under a card of processors
constexpr int64_t patience_ns = 4'000'000'000; // for a host that is cut off
constexpr int64_t look_again_ns = 10'000'000;

// The part from `from` on, in a place of several pieces.
uint32_t part_of(const Place &place, uint64_t from, iovec out[]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < place.pieces; i++) {
        const uint64_t skipped = std::min<uint64_t>(from, place.piece[i].bytes);
        from -= skipped;
        if (skipped == place.piece[i].bytes) continue;
        out[count++] = {reinterpret_cast<void *>(place.piece[i].address + skipped),
                        place.piece[i].bytes - skipped};
    }
    return count;
}

// Copies the bytes from `from` to `to` between this memory and the place, if the other process
// still lends it.
Copied copy(const Place &place, tp::IovCursor memory, uint64_t from, uint64_t to, bool writes) {
    const pid_t process = simulator_process_of(place.host);
    uint64_t number = 0;
    iovec here{&number, sizeof number};
    iovec there{reinterpret_cast<void *>(place.lent), sizeof number};
    if (process_vm_readv(process, &here, 1, &there, 1, 0) != ssize_t(sizeof number))
        return errno == EFAULT ? Copied::refused : Copied::unreached;
    if (number != place.number) return Copied::refused;
    iovec own[tp::max_iov], its[tp::max_iov];
    if (from > 0) memory.advance(from);
    const uint64_t bytes = to - from;
    const int pieces = memory.describe(own, bytes);
    const uint32_t its_pieces = part_of(place, from, its);
    if (bytes == 0) return Copied::all;
    // The shorter of the two ends it.
    const ssize_t done = writes
                             ? process_vm_writev(process, own, size_t(pieces), its, its_pieces, 0)
                             : process_vm_readv(process, own, size_t(pieces), its, its_pieces, 0);
    return done == ssize_t(bytes) ? Copied::all : Copied::refused;
}

Bytes bytes_of(tp::IovCursor memory, uint64_t bytes) {
    Bytes out(bytes);
    if (bytes > 0) memory.gather(out.data(), bytes);
    return out;
}

// As a card of processors, which may stop anywhere: of each four bytes, three are from before.
void tear(const tp::IovCursor &memory, const Bytes &before) {
    iovec pieces[tp::max_iov];
    const int count = memory.describe(pieces, before.size());
    uint64_t at = 0;
    for (const iovec &piece : std::span(pieces, size_t(count)))
        for (uint64_t i = 0; i < piece.iov_len; i++, at++)
            if (at % 4 != 3) static_cast<uint8_t *>(piece.iov_base)[i] = before[at];
}

} // namespace

Lent *Wire::lend(Link *link, Operation *operation) {
    lent_.push_back({number(), link, operation});
    return &lent_.back();
}

bool Wire::withdraw(Operation *bulk) {
    if (!takes_back_) return false;
    lent_.remove_if([&](Lent &lent) {
        if (lent.operation != bulk) return false;
        lent.number = 0;
        return true;
    });
    return true;
}

void Wire::break_off(Operation *place) {
    for (Move &move : moves_)
        if (move.operation == place) {
            move.broken_off = true;
            move.due_ns = host_.now_ns();
            if (!entered_) wake_at(0);
        }
}

void Wire::fetch(rdm::Link *link, rdm::Remote *which, Operation *place) {
    auto *remote = static_cast<Remote *>(which);
    start({.kind = Move::Kind::bulk,
           .link = static_cast<Link *>(link),
           .operation = place,
           .place = remote->place,
           .from = remote->from});
    remote->~Remote();
    Memory<Remote>().deallocate(remote, 1);
}

void Wire::drop(rdm::Link *, rdm::Remote *which) {
    auto *remote = static_cast<Remote *>(which);
    tell_done(remote->from, remote->place.number);
    remote->~Remote();
    Memory<Remote>().deallocate(remote, 1);
}

dtrain_status_t Wire::reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) {
    if (mem.mem_type != DTRAIN_MEM_HOST)
        return host_.fail(DTRAIN_ERR_UNSUPPORTED, "card: only host memory can be registered");
    auto *made = new (std::nothrow) Registration;
    if (!made) return host_.fail(DTRAIN_ERR_NO_MEMORY, "card: no memory for a registration");
    made->wire = this;
    made->start = reinterpret_cast<uintptr_t>(mem.address);
    made->length = mem.length;
    made->lent.number = number();
    if (!registered_.add(made)) {
        delete made;
        return host_.fail(DTRAIN_ERR_NO_MEMORY, "card: no memory for another registration");
    }
    *mr_p = made;
    return DTRAIN_OK;
}

void Wire::dereg(dtrain_tp_mr_t *mr) {
    auto *registration = static_cast<Registration *>(mr);
    registered_.remove(registration);
    registration->lent.number = 0;
    delete registration;
}

dtrain_status_t Wire::rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) {
    const auto &registration = *static_cast<Registration *>(mr);
    Place key{registration.lent.number, reinterpret_cast<uintptr_t>(&registration.lent),
              registration.length,      own_.host,
              attr_.by_processors,      1};
    key.piece[0] = {registration.start, registration.length};
    if (len < sizeof key)
        return host_.fail(DTRAIN_ERR_TRUNCATED, "card: a key needs %zu bytes", sizeof key);
    memcpy(buf, &key, sizeof key);
    return DTRAIN_OK;
}

Sent Wire::put(rdm::Link *link, Operation *from, uint64_t remote, const void *rkey) {
    return start_remote(Move::Kind::put, link, from, remote, rkey);
}

Sent Wire::get(rdm::Link *link, Operation *into, uint64_t remote, const void *rkey) {
    return start_remote(Move::Kind::get, link, into, remote, rkey);
}

Sent Wire::start_remote(Move::Kind kind, rdm::Link *which, Operation *operation, uint64_t remote,
                        const void *rkey) {
    auto *link = static_cast<Link *>(which);
    Place place;
    memcpy(static_cast<void *>(&place), rkey, sizeof place);
    const uint64_t at = remote - place.piece[0].address, len = operation->memory.remaining();
    if (link->broken.why || at > place.bytes || len > place.bytes - at) return Sent::broken;
    if (!len) return Sent::now;
    place.piece[0] = {remote, len};
    place.bytes = len;
    start({.kind = kind, .link = link, .operation = operation, .place = place, .from = {}});
    return Sent::later;
}

void Wire::start(Move move) {
    move.began_ns = host_.now_ns();
    move.due_ns = move.began_ns + int64_t(number() % longest_ns);
    if (!entered_) wake_at(move.due_ns);
    moves_.push_back(std::move(move));
}

bool Wire::advance(Move &move) {
    const int64_t now = host_.now_ns();
    if (move.due_ns > now) return false;
    if (move.broken_off) {
        if (move.kind == Move::Kind::bulk) tell_done(move.from, move.place.number);
        return report(move, false), true;
    }
    if (simulator_cut_until(move.place.host) > now && now - move.began_ns < patience_ns) {
        move.due_ns = now + look_again_ns;
        return false;
    }
    const Copied copied =
        simulator_cut_until(move.place.host) > now ? Copied::unreached : copy_part(move);
    if (copied == Copied::in_part) {
        move.due_ns = now + int64_t(number() % (move.place.torn ? full_socket_ns : longest_ns));
        return false;
    }
    const bool ok = copied == Copied::all;
    if (ok) traffic_.in_place += move.operation->memory.remaining();
    if (ok && move.kind == Move::Kind::bulk) tell_done(move.from, move.place.number);
    // Announced memory may be taken back; all else means that the link is of no use.
    if (copied == Copied::unreached || (!ok && move.kind != Move::Kind::bulk))
        move.link->broken = {.why = "the peer's memory cannot be reached"};
    report(move, ok);
    return true;
}

// What is long moves in two parts, and its memory may change between them.
Copied Wire::copy_part(Move &move) {
    const tp::IovCursor &memory = move.operation->memory;
    const bool writes = move.kind == Move::Kind::put, torn = move.place.torn && !writes;
    const uint64_t all = std::min(memory.remaining(), move.place.bytes), from = move.moved;
    const bool is_first = from == 0 && all >= 16;
    move.moved = is_first && !torn ? rdm::whole_words(8 + number() % (all - 8)) : all;
    const Bytes before = torn ? bytes_of(memory, from) : Bytes();
    const Copied copied = copy(move.place, memory, torn ? 0 : from, move.moved, writes);
    if (copied != Copied::all) return copied;
    if (torn) tear(memory, before);
    return is_first ? Copied::in_part : Copied::all;
}

void Wire::report(const Move &move, bool ok) {
    if (move.kind == Move::Kind::put)
        protocol_.on_sent(move.operation, ok);
    else
        protocol_.on_fetched(move.operation, ok);
}

} // namespace dtrain::card
