// A peer over libfabric that keeps to no rule: it says what a case wants it to.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ofi/packet.h"
#include "rdm/handshakes.h"
#include "rig.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

namespace dtrain::test {

class Stranger {
  public:
    explicit Stranger(Node &victim) : host_(table_.table()), victim_(victim) {
        const Bytes address = victim.address();
        assert_true(peer_.decode(address.data(), address.size()));
        char names[256];
        assert_int_equal(ops().list(victim.host.table(), names, sizeof names), DTRAIN_OK);
        const std::string device = names;
        const size_t slash = device.find('/');
        assert_int_equal(fabric_.open(host_, device.substr(0, slash), device.substr(slash + 1)),
                         DTRAIN_OK);
        assert_int_equal(fi_av_insert(fabric_.peers.get(), peer_.fabric, 1, &to_, 0, nullptr), 1);
        const iovec piece{buffer_.data(), buffer_.size()};
        fi_msg message{};
        message.msg_iov = &piece;
        message.iov_count = 1;
        message.addr = FI_ADDR_UNSPEC;
        message.context = &contexts_.emplace_back();
        assert_int_equal(fi_recvmsg(fabric_.endpoint.get(), &message, FI_MULTI_RECV), 0);
        own.kind[0] = 0;
        memcpy(own.kind, peer_.kind, sizeof own.kind);
        host_.random(own.id.data(), own.id.size());
        size_t len = sizeof own.fabric;
        assert_int_equal(fi_getname(&fabric_.endpoint->fid, own.fabric, &len), 0);
        own.fabric_len = htole16(uint16_t(len));
        own.seal(host_);
    }

    Node &victim() { return victim_; }
    // Drives victim and stranger until the condition holds.
    template <class Condition> bool until(Condition &&condition) {
        return drive({&victim_}, [&] {
            poll();
            return condition();
        });
    }
    void say(Bytes bytes) {
        const Bytes &kept = said_.emplace_back(std::move(bytes));
        post([&](void *context) {
            return fi_send(fabric_.endpoint.get(), kept.data(), kept.size(), nullptr, to_, context);
        });
    }
    // A head on the channel, once connected; `front` goes before it.
    void say(rdm::Head head, const Bytes &payload = {}, const Bytes &front = {}) {
        head.to = le32toh(theirs_.number);
        head.token = theirs_.token;
        head.sequence = sequence++;
        Bytes bytes = front;
        bytes.resize(front.size() + rdm::Head::wire_length);
        head.encode(bytes.data() + front.size());
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        say(std::move(bytes));
    }
    template <class T> static Bytes bytes_of(const T &object, size_t len = sizeof(T)) {
        const auto *first = reinterpret_cast<const uint8_t *>(&object);
        return Bytes(first, first + len);
    }
    void announce(uint64_t tag, uint64_t length, uint32_t id = 1) {
        ofi::Announce announce;
        announce.bulk = {id, 0, 42};
        say({.kind = rdm::Kind::bulk, .id = id, .tag = tag, .length = length}, {},
            bytes_of(announce));
    }
    // Writes with an immediate into the victim's memory; false: libfabric said no, at either end.
    bool write(const ofi::Target &target, uint64_t offset, uint64_t len, uint64_t immediate) {
        const Bytes &kept = said_.emplace_back(Bytes(len, 0xEE));
        const uint32_t errors = errors_, sent = sent_;
        post([&](void *context) {
            return fi_writedata(fabric_.endpoint.get(), kept.data(), len, nullptr, immediate, to_,
                                target.address + offset, target.key, context);
        });
        return until([&] { return sent_ != sent || errors_ != errors; }) && errors_ == errors;
    }
    Bytes hello() {
        rdm::Introduction introduction;
        introduction.hello = tp::Hello::make(host_, own.id, peer_.id);
        introduction.number = htole32(1);
        introduction.token = 7;
        Bytes bytes(rdm::Head::wire_length);
        rdm::Head{.kind = rdm::Kind::hello}.encode(bytes.data());
        for (const Bytes &part : {bytes_of(introduction), bytes_of(own)})
            bytes.insert(bytes.end(), part.begin(), part.end());
        return bytes;
    }
    // From here on the victim takes it for a peer.
    void connect() {
        say(hello());
        hear_reply();
        say({.kind = rdm::Kind::proof}, Bytes(sizeof(tp::Proof)));
        rdm::Head verdict;
        verdict.decode(next(uint8_t(rdm::Kind::verdict)).data());
        assert_int_equal(verdict.tag, tp::Verdict::accepted);
        say({.kind = rdm::Kind::confirmation});
    }
    void hear_reply() {
        const Bytes reply = next(uint8_t(rdm::Kind::reply));
        memcpy(static_cast<void *>(&theirs_), reply.data() + rdm::Head::wire_length,
               sizeof theirs_);
        sequence = 1;
    }
    // Whether a packet that begins like this has come.
    bool has_come(uint8_t kind) {
        for (int i = 0; i < 100; i++) poll();
        return std::any_of(came_.begin(), came_.end(), [&](auto &one) { return one[0] == kind; });
    }
    // The next packet that begins like this; others are passed over.
    Bytes next(uint8_t kind) {
        Bytes found;
        assert_true(until([&] {
            while (found.empty() && !came_.empty()) {
                if (came_.front()[0] == kind) found = came_.front();
                came_.pop_front();
            }
            return !found.empty();
        }));
        return found;
    }

    rdm::Address own;
    uint32_t sequence = 0; // of the next head

  private:
    template <class Post> void post(Post &&post) {
        void *context = &contexts_.emplace_back();
        assert_true(until([&] { return post(context) != -FI_EAGAIN; }));
    }
    void poll() {
        fi_cq_data_entry entry;
        fi_cq_err_entry error{};
        while (fi_cq_read(fabric_.rx.get(), &entry, 1) == 1)
            if (entry.flags & FI_RECV && entry.len) {
                const auto *first = static_cast<const uint8_t *>(entry.buf);
                came_.emplace_back(first, first + entry.len);
            }
        ssize_t n;
        while ((n = fi_cq_read(fabric_.tx.get(), &entry, 1)) == 1 || n == -FI_EAVAIL) {
            if (n == 1) sent_++;
            if (n < 0 && fi_cq_readerr(fabric_.tx.get(), &error, 0) == 1) errors_++;
        }
    }

    FakeHost table_;
    tp::Host host_;
    Node &victim_;
    rdm::Address peer_;
    rdm::Introduction theirs_;
    Bytes buffer_ = Bytes(4 << 20);
    std::deque<fi_context2> contexts_;
    std::deque<Bytes> said_, came_;
    uint32_t sent_ = 0, errors_ = 0;
    fi_addr_t to_ = FI_ADDR_UNSPEC;
    ofi::Fabric fabric_; // goes first: it has the memory above
};

} // namespace dtrain::test
