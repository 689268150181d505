// Messages with checksums (option verify): a transport delivers them changed, cut off or mixed up.
// SPDX-License-Identifier: Apache-2.0
//
// A transport that keeps what is sent, and delivers what the input makes of it. Input: steps.
#include "tests/fuzz/fuzz.h"

#include "base/status.h"
#include "transport/verifier.h"

#include <deque>
#include <map>

using namespace dtrain;
using fuzz::Bytes;

namespace {

enum class Step : uint8_t { receive, send, pass, change, cut, raw, withdraw, cancel, count };
constexpr size_t most_pending = 200; // more than the verifier has in one block

struct Packet {
    uint64_t tag;
    Bytes bytes;
};

// The device behind: every receive gets the next message of its tag.
struct Behind {
    struct Place {
        uint64_t tag, cookie;
        std::vector<dtrain_tp_iov_t> pieces;
    };
    std::deque<Place> places;
    std::deque<Packet> sent;
    std::deque<dtrain_tp_done_t> done;
    bool refuses = false;

    void deliver(const Packet &packet) {
        for (auto place = places.begin(); place != places.end(); ++place) {
            if (place->tag != packet.tag) continue;
            size_t at = 0;
            for (const dtrain_tp_iov_t &piece : place->pieces) {
                const size_t n = std::min<size_t>(piece.len, packet.bytes.size() - at);
                if (n > 0) std::memcpy(piece.addr, packet.bytes.data() + at, n);
                at += n;
            }
            const Status status = at < packet.bytes.size() ? DTRAIN_ERR_TRUNCATED : DTRAIN_OK;
            finish(place->cookie, packet.tag, at, status, DTRAIN_TP_RECV);
            places.erase(place);
            return;
        }
    }
    void finish(uint64_t cookie, uint64_t tag, uint64_t bytes, Status status, uint32_t kind) {
        done.push_back({cookie, bytes, tag, 0, status, kind, 0});
    }
    void end(uint64_t cookie) {
        for (auto place = places.begin(); place != places.end(); ++place)
            if (place->cookie == cookie) {
                finish(cookie, place->tag, 0, DTRAIN_ERR_CANCELED, DTRAIN_TP_RECV);
                places.erase(place);
                return;
            }
    }
};

Behind &behind(dtrain_tp_dev_t *dev) { return *reinterpret_cast<Behind *>(dev); }
Behind &behind(dtrain_tp_ep_t *ep) { return *reinterpret_cast<Behind *>(ep); }

dtrain_tp_ops_t table() {
    dtrain_tp_ops_t ops{};
    ops.query = [](dtrain_tp_dev_t *, dtrain_tp_attr_t *attr) -> Status {
        attr->max_iov = 4, attr->max_message = 1 << 20, attr->eager_limit = 64;
        return DTRAIN_OK;
    };
    ops.close = [](dtrain_tp_dev_t *) {};
    ops.connect = [](dtrain_tp_dev_t *dev, const void *, size_t, uint64_t,
                     dtrain_tp_ep_t **ep) -> Status {
        *ep = reinterpret_cast<dtrain_tp_ep_t *>(dev);
        return DTRAIN_OK;
    };
    ops.disconnect = [](dtrain_tp_ep_t *) {};
    ops.send = [](dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                  uint64_t cookie) -> Status {
        if (behind(ep).refuses) return DTRAIN_ERR_BUSY;
        Packet packet{tag, {}};
        for (const dtrain_tp_iov_t &piece : std::span(iov, n)) {
            const auto *from = static_cast<const uint8_t *>(piece.addr);
            packet.bytes.insert(packet.bytes.end(), from, from + piece.len);
        }
        behind(ep).finish(cookie, tag, packet.bytes.size(), DTRAIN_OK, DTRAIN_TP_SEND);
        behind(ep).sent.push_back(std::move(packet));
        return DTRAIN_OK;
    };
    ops.recv = [](dtrain_tp_dev_t *dev, uint64_t tag, uint64_t, const dtrain_tp_iov_t *iov,
                  uint32_t n, uint64_t cookie) -> Status {
        if (behind(dev).refuses) return DTRAIN_ERR_BUSY;
        behind(dev).places.push_back({tag, cookie, {iov, iov + n}});
        return DTRAIN_OK;
    };
    ops.progress = [](dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
        uint32_t n = 0;
        for (auto &from = behind(dev).done; n < max && !from.empty(); n++) {
            done[n] = from.front();
            from.pop_front();
        }
        return int32_t(n);
    };
    ops.cancel =
        ops.withdraw = [](dtrain_tp_dev_t *dev, uint64_t cookie) { behind(dev).end(cookie); };
    ops.limit_eager = [](dtrain_tp_dev_t *, uint64_t) {};
    return ops;
}

struct Rig {
    Rig() {
        FUZZ_REQUIRE(transport::verify_messages(ops, dev) == DTRAIN_OK);
        dtrain_tp_attr_t attr{};
        attr.struct_size = sizeof attr;
        FUZZ_REQUIRE(ops.query(dev, &attr) == DTRAIN_OK && attr.max_iov == 3);
        FUZZ_REQUIRE(ops.connect(dev, nullptr, 0, 0, &ep) == DTRAIN_OK);
        ops.limit_eager(dev, UINT64_MAX);
    }
    ~Rig() {
        while (!inner.places.empty()) inner.end(inner.places.front().cookie);
        reap();
        FUZZ_REQUIRE(places.empty()); // each operation has completed once
        ops.disconnect(ep);
        ops.close(dev);
    }
    void post(bool sends, uint64_t tag, size_t length, uint32_t n, uint8_t fill) {
        if (places.size() >= most_pending) return;
        Bytes &memory = places[++cookies];
        memory.assign(length, fill);
        std::vector<dtrain_tp_iov_t> iov;
        for (uint32_t i = 0; i < n; i++) {
            const size_t from = length * i / n, to = length * (i + 1) / n;
            iov.push_back({memory.data() + from, to - from, nullptr});
        }
        const Status s = sends ? ops.send(ep, tag, iov.data(), n, cookies)
                               : ops.recv(dev, tag, ~uint64_t{0}, iov.data(), n, cookies);
        FUZZ_REQUIRE(s == DTRAIN_OK || n > 8 || inner.refuses);
        if (s != DTRAIN_OK) places.erase(cookies);
        if (s == DTRAIN_OK && sends) genuine[tag].push_back(memory);
    }
    // A message of a genuine length that arrives intact is one that was sent with that tag.
    void reap() {
        dtrain_tp_done_t done[3];
        for (int32_t n; (n = ops.progress(dev, done, 3)) > 0;)
            for (const dtrain_tp_done_t &one : std::span(done, size_t(n))) {
                const auto place = places.find(one.cookie);
                FUZZ_REQUIRE(place != places.end() && one.bytes <= place->second.size());
                if (one.kind == DTRAIN_TP_RECV && one.status == DTRAIN_OK && !forged) {
                    place->second.resize(one.bytes);
                    const auto &all = genuine[one.tag];
                    FUZZ_REQUIRE(std::find(all.begin(), all.end(), place->second) != all.end());
                }
                places.erase(place);
            }
    }
    Packet next() {
        if (inner.sent.empty()) return {};
        Packet packet = std::move(inner.sent.front());
        inner.sent.pop_front();
        return packet;
    }

    Behind inner;
    dtrain_tp_ops_t ops = table();
    dtrain_tp_dev_t *dev = reinterpret_cast<dtrain_tp_dev_t *>(&inner);
    dtrain_tp_ep_t *ep = nullptr;
    std::map<uint64_t, Bytes> places; // by cookie
    std::map<uint64_t, std::vector<Bytes>> genuine;
    uint64_t cookies = 0;
    bool forged = false; // the input may have computed a checksum
};

void act(Rig &rig, fuzz::Input &in) {
    const Step step = Step(in.byte() % uint8_t(Step::count));
    switch (step) {
    case Step::receive:
    case Step::send: {
        const uint8_t tag = in.byte(), pieces = in.byte();
        rig.inner.refuses = pieces >= 240;
        return rig.post(step == Step::send, tag % 4, in.take<uint16_t>() % 2048,
                        1 + pieces % (pieces >= 200 ? 12 : 3), tag);
    }
    case Step::pass: return rig.inner.deliver(rig.next());
    case Step::change: {
        Packet packet = rig.next();
        const uint16_t at = in.take<uint16_t>();
        // Up to four bytes beside each other: such a change a checksum always finds.
        const Bytes mask = in.bytes(1 + in.byte() % 4);
        for (size_t i = 0; i < mask.size() && at % 4096 + i < packet.bytes.size(); i++)
            packet.bytes[at % 4096 + i] ^= mask[i];
        if (at >= 0x8000) packet.tag = (packet.tag + 1) % 4;
        return rig.inner.deliver(packet);
    }
    case Step::cut: {
        Packet packet = rig.next();
        packet.bytes.resize(std::min<size_t>(packet.bytes.size(), in.take<uint16_t>()));
        return rig.inner.deliver(packet);
    }
    case Step::raw: {
        const uint64_t tag = in.byte() % 4;
        rig.forged = true;
        return rig.inner.deliver({tag, in.bytes(in.byte())});
    }
    case Step::withdraw: return rig.ops.withdraw(rig.dev, in.byte());
    default: return rig.ops.cancel(rig.dev, in.byte());
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    Rig rig;
    for (int steps = 0; !in.empty() && steps < 300; steps++) {
        act(rig, in);
        if (steps % 2) rig.reap();
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto post = [](Made &made, Step step, uint8_t tag, uint8_t pieces, uint16_t length) {
        made.byte(uint8_t(step)).byte(tag).byte(pieces).put(length);
    };
    std::vector<Bytes> out;
    for (const Step step : {Step::pass, Step::change, Step::cut}) {
        Made made;
        for (const uint8_t pieces : {0, 1, 2}) {
            post(made, Step::receive, 1, pieces, 100);
            post(made, Step::send, 1, pieces, 100);
            made.byte(uint8_t(step));
            if (step == Step::change) made.put(uint16_t(20)).byte(1).byte(1).byte(2);
            if (step == Step::cut) made.put(uint16_t(pieces * 6));
        }
        out.push_back(made);
    }
    Made other; // of another tag, with too many pieces, withdrawn, refused
    post(other, Step::receive, 2, 0, 8);
    post(other, Step::receive, 1, 0, 0);
    post(other, Step::send, 1, 0, 8);
    other.byte(uint8_t(Step::change)).put(uint16_t(0xffff)).byte(0).byte(0);
    post(other, Step::receive, 2, 211, 8);
    post(other, Step::send, 2, 211, 8);
    post(other, Step::receive, 2, 240, 8);
    post(other, Step::send, 2, 240, 8);
    other.byte(uint8_t(Step::withdraw)).byte(2).byte(uint8_t(Step::cancel)).byte(1);
    out.push_back(other);
    Made many;
    for (int i = 0; i < 70; i++) post(many, Step::receive, 3, 0, 4);
    many.byte(uint8_t(Step::raw)).byte(3).byte(12).all(Bytes(12, 1));
    out.push_back(many);
    return out;
}
