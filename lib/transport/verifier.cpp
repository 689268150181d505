// Sends messages with their checksums, and compares these when messages arrive.
// SPDX-License-Identifier: Apache-2.0
#include "transport/verifier.h"

#include "base/crc32c.h"
#include "base/status.h"
#include "common/iov.h"
#include "common/list.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace dtrain::transport {
namespace {

constexpr uint32_t most_pieces = 8; // of a message, without the checksum

// The checksum travels before the message, in eight bytes, since networks copy aligned memory
// faster.
using Checksum = uint64_t;
constexpr uint64_t extra_bytes = sizeof(Checksum);

// Of the first `bytes` bytes of the pieces, and of what the message is: one that is cut off, or
// delivered to another receive, differs, too.
Checksum checksum_of(uint64_t tag, std::span<const dtrain_tp_iov_t> pieces, uint64_t bytes) {
    const uint64_t heading[] = {tag, bytes};
    uint32_t sum = crc32c(heading, sizeof heading);
    for (const dtrain_tp_iov_t &piece : pieces) {
        const uint64_t part = std::min(piece.len, bytes);
        sum = crc32c(piece.addr, part, sum);
        bytes -= part;
    }
    return sum;
}

// A message in flight; its address is the cookie of the transport's operation.
struct Message {
    Checksum checksum = 0;
    uint64_t cookie = 0;
    uint32_t n = 0;                          // pieces
    dtrain_tp_iov_t pieces[1 + most_pieces]; // the first is the checksum
    tp::Link<Message> link;

    std::span<const dtrain_tp_iov_t> payload() const { return {pieces + 1, n - 1}; }
};

// Messages in memory that is registered once with transports that write remotely.
struct Block {
    Block *next = nullptr;
    dtrain_tp_mr_t *registration = nullptr;
    Message messages[64];
};

class Verifier;

struct Endpoint {
    Verifier *verifier;
    dtrain_tp_ep_t *inner;
};

class Verifier {
  public:
    Verifier(const dtrain_tp_ops_t &inner_ops, dtrain_tp_dev_t *inner_dev,
             const dtrain_tp_attr_t &attr)
        : ops(inner_ops), dev(inner_dev), max_message_(attr.max_message - extra_bytes),
          registers_((attr.caps & DTRAIN_TP_CAP_PUT) != 0) {}
    Verifier(const Verifier &) = delete;
    Verifier &operator=(const Verifier &) = delete;
    ~Verifier();

    Status send(Endpoint &to, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                uint64_t cookie);
    Status recv(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
                uint64_t cookie);
    int32_t progress(dtrain_tp_done_t *done, uint32_t max);
    void cancel(uint64_t cookie) {
        each(cookie, [&](uint64_t inner) { ops.cancel(dev, inner); });
    }
    void withdraw(uint64_t cookie) {
        each(cookie, [&](uint64_t inner) { ops.withdraw(dev, inner); });
    }

    const dtrain_tp_ops_t ops; // of the device behind, as its handle
    dtrain_tp_dev_t *const dev;

  private:
    // nullptr: no memory.
    Message *make(const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie);
    bool add_block();
    void forget(Message *message) {
        in_flight_.remove(message);
        spare_.push_back(message);
    }
    template <class Do> void each(uint64_t cookie, const Do &act) {
        for (Message *m = in_flight_.front(), *next = nullptr; m != nullptr; m = next) {
            next = decltype(in_flight_)::next(m);
            if (m->cookie == cookie) act(reinterpret_cast<uintptr_t>(m));
        }
    }

    const uint64_t max_message_;
    const bool registers_;
    Block *blocks_ = nullptr;
    tp::List<Message, &Message::link> in_flight_, spare_;
};

Verifier::~Verifier() {
    for (Block *block = blocks_; block != nullptr; block = block->next)
        if (block->registration != nullptr) ops.mr_dereg(block->registration);
    ops.close(dev);
    while (blocks_ != nullptr) { // until then messages may be in flight
        Block *block = blocks_;
        blocks_ = block->next;
        delete block;
    }
}

bool Verifier::add_block() {
    auto *block = new (std::nothrow) Block;
    if (block == nullptr) return false;
    if (registers_) {
        dtrain_mem_params_t memory = {};
        memory.struct_size = sizeof memory;
        memory.address = block->messages;
        memory.length = sizeof block->messages;
        // Without a registration the transport makes one for each message.
        if (ops.mr_reg(dev, &memory, &block->registration) != DTRAIN_OK)
            block->registration = nullptr;
    }
    block->next = blocks_;
    blocks_ = block;
    for (Message &message : block->messages) {
        message.pieces[0] = {&message.checksum, extra_bytes, block->registration};
        spare_.push_back(&message);
    }
    return true;
}

Message *Verifier::make(const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie) {
    if (spare_.empty() && !add_block()) return nullptr;
    Message *message = spare_.pop_front();
    message->cookie = cookie;
    message->n = n + 1;
    std::copy_n(iov, n, message->pieces + 1);
    in_flight_.push_back(message);
    return message;
}

Status Verifier::send(Endpoint &to, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                      uint64_t cookie) {
    uint64_t bytes = 0;
    if (n > most_pieces || !tp::iov_length(iov, n, &bytes) || bytes > max_message_)
        return fail(DTRAIN_ERR_INVALID, "a message of %u pieces is not valid", n);
    Message *message = make(iov, n, cookie);
    if (message == nullptr) return DTRAIN_ERR_NO_MEMORY;
    message->checksum = checksum_of(tag, message->payload(), bytes);
    const Status s =
        ops.send(to.inner, tag, message->pieces, message->n, reinterpret_cast<uintptr_t>(message));
    if (s != DTRAIN_OK) forget(message);
    return s;
}

Status Verifier::recv(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
                      uint64_t cookie) {
    if (n > most_pieces) return fail(DTRAIN_ERR_INVALID, "a receive of %u pieces is not valid", n);
    Message *message = make(iov, n, cookie);
    if (message == nullptr) return DTRAIN_ERR_NO_MEMORY;
    const Status s = ops.recv(dev, wanted, mask, message->pieces, message->n,
                              reinterpret_cast<uintptr_t>(message));
    if (s != DTRAIN_OK) forget(message);
    return s;
}

int32_t Verifier::progress(dtrain_tp_done_t *done, uint32_t max) {
    const int32_t n = ops.progress(dev, done, max);
    for (int32_t i = 0; i < n; i++) {
        dtrain_tp_done_t &event = done[i];
        if (event.kind != DTRAIN_TP_SEND && event.kind != DTRAIN_TP_RECV) continue;
        auto *message = reinterpret_cast<Message *>(uintptr_t(event.cookie));
        const bool whole = event.bytes >= extra_bytes;
        event.bytes -= whole ? extra_bytes : event.bytes;
        // Of a message that is longer than its receive, only the beginning is here.
        if (event.kind == DTRAIN_TP_RECV && event.status == DTRAIN_OK &&
            (!whole ||
             message->checksum != checksum_of(event.tag, message->payload(), event.bytes)))
            event.status = DTRAIN_ERR_CORRUPT;
        event.cookie = message->cookie;
        forget(message);
    }
    return n;
}

// The table of operations. Most of them are the device's own, with its own handles.
Verifier &from(dtrain_tp_dev_t *dev) { return *reinterpret_cast<Verifier *>(dev); }
Endpoint &from(dtrain_tp_ep_t *ep) { return *reinterpret_cast<Endpoint *>(ep); }

template <auto operation> struct Pass;
template <class Result, class... Args,
          Result (*dtrain_tp_ops_t::*operation)(dtrain_tp_dev_t *, Args...)>
struct Pass<operation> {
    static Result call(dtrain_tp_dev_t *dev, Args... args) {
        return (from(dev).ops.*operation)(from(dev).dev, args...);
    }
};
template <class Result, class... Args,
          Result (*dtrain_tp_ops_t::*operation)(dtrain_tp_ep_t *, Args...)>
struct Pass<operation> {
    static Result call(dtrain_tp_ep_t *ep, Args... args) {
        return (from(ep).verifier->ops.*operation)(from(ep).inner, args...);
    }
};

template <auto... operations> void pass_on(dtrain_tp_ops_t &ops) {
    ((ops.*operations = ops.*operations != nullptr ? Pass<operations>::call : nullptr), ...);
}

Status query(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr) {
    dtrain_tp_attr_t full = {};
    full.struct_size = sizeof full;
    full.numa_node = -1;
    if (Status s = from(dev).ops.query(from(dev).dev, &full); s != DTRAIN_OK) return s;
    full.max_iov = std::min(full.max_iov, most_pieces + 1) - 1;
    full.max_message -= extra_bytes;
    full.eager_limit -= std::min(full.eager_limit, extra_bytes);
    full.struct_size = std::min<uint32_t>(attr->struct_size, sizeof full);
    std::memcpy(attr, &full, full.struct_size);
    return DTRAIN_OK;
}

Status connect(dtrain_tp_dev_t *dev, const void *address, size_t len, uint64_t cookie,
               dtrain_tp_ep_t **ep_p) {
    Verifier &verifier = from(dev);
    auto *endpoint = new (std::nothrow) Endpoint{&verifier, nullptr};
    if (endpoint == nullptr) return DTRAIN_ERR_NO_MEMORY;
    const Status s = verifier.ops.connect(verifier.dev, address, len, cookie, &endpoint->inner);
    if (s == DTRAIN_OK)
        *ep_p = reinterpret_cast<dtrain_tp_ep_t *>(endpoint);
    else
        delete endpoint;
    return s;
}

void disconnect(dtrain_tp_ep_t *ep) {
    from(ep).verifier->ops.disconnect(from(ep).inner);
    delete &from(ep);
}

Status attach(dtrain_tp_dev_t *dev, dtrain_tp_ep_t *creator, const void *handle, uint64_t bytes,
              uint32_t members, uint32_t member, dtrain_tp_win_t **win_p) {
    return from(dev).ops.window_attach(from(dev).dev, from(creator).inner, handle, bytes, members,
                                       member, win_p);
}

dtrain_tp_ops_t table_of(dtrain_tp_ops_t ops) {
    using Ops = dtrain_tp_ops_t;
    pass_on<&Ops::address, &Ops::reachable, &Ops::mr_reg, &Ops::purge, &Ops::put, &Ops::get,
            &Ops::event_fd, &Ops::arm, &Ops::window_create, &Ops::moved, &Ops::counters,
            &Ops::route>(ops);
    ops.query = query;
    ops.close = [](dtrain_tp_dev_t *dev) { delete &from(dev); };
    ops.connect = connect;
    ops.disconnect = disconnect;
    ops.send = [](dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                  uint64_t cookie) {
        return from(ep).verifier->send(from(ep), tag, iov, n, cookie);
    };
    ops.recv = [](dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov,
                  uint32_t n,
                  uint64_t cookie) { return from(dev).recv(wanted, mask, iov, n, cookie); };
    ops.cancel = [](dtrain_tp_dev_t *dev, uint64_t cookie) { from(dev).cancel(cookie); };
    ops.progress = [](dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
        return from(dev).progress(done, max);
    };
    if (ops.window_attach != nullptr) ops.window_attach = attach;
    if (ops.limit_eager != nullptr)
        ops.limit_eager = [](dtrain_tp_dev_t *dev, uint64_t bytes) {
            from(dev).ops.limit_eager(from(dev).dev, bytes + std::min(extra_bytes, ~bytes));
        };
    if (ops.withdraw != nullptr)
        ops.withdraw = [](dtrain_tp_dev_t *dev, uint64_t cookie) { from(dev).withdraw(cookie); };
    return ops;
}

} // namespace

Status verify_messages(dtrain_tp_ops_t &ops, dtrain_tp_dev_t *&dev) {
    dtrain_tp_attr_t attr = {};
    attr.struct_size = sizeof attr;
    if (Status s = ops.query(dev, &attr); s != DTRAIN_OK) return s;
    if (attr.max_iov < 2 || attr.max_message <= extra_bytes)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "it cannot send a message and its checksum together (option verify)");
    auto *verifier = new (std::nothrow) Verifier(ops, dev, attr);
    if (verifier == nullptr) return fail(DTRAIN_ERR_NO_MEMORY, "no memory for a verifier");
    ops = table_of(ops);
    dev = reinterpret_cast<dtrain_tp_dev_t *>(verifier);
    return DTRAIN_OK;
}

} // namespace dtrain::transport
