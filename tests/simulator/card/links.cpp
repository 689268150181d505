// Links to other cards, and what arrives from those.
// SPDX-License-Identifier: Apache-2.0
#include "card/wire.h"

#include <cerrno>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace dtrain::card {
namespace {

constexpr uint32_t network = 0x0A000001; // the address of host 0
constexpr size_t most_frames = 16;       // that wait on a link
constexpr size_t most_at_once = 16 << 10;

void append(Bytes &to, const void *from, size_t len) {
    const auto *bytes = static_cast<const uint8_t *>(from);
    to.insert(to.end(), bytes, bytes + len);
}

} // namespace

bool Wire::watch(int fd, uint32_t events, void *what) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = what;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

rdm::Link *Wire::link(const uint8_t *address, size_t len) {
    Link &link = links_.emplace_back();
    memcpy(&link.peer, address, std::min(len, sizeof link.peer));
    link.fd = tp::Fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(link.peer.port);
    at.sin_addr.s_addr = htonl(network + uint32_t(link.peer.host));
    const bool began = connect(link.fd.get(), reinterpret_cast<sockaddr *>(&at), sizeof at) == 0 ||
                       errno == EINPROGRESS;
    if (began && watch(link.fd.get(), EPOLLIN, &link)) return &link;
    (void)host_.fail(DTRAIN_ERR_TRANSPORT, "card: cannot reach host %d", link.peer.host);
    links_.pop_back();
    return nullptr;
}

void Wire::unlink(rdm::Link *which) {
    auto *link = static_cast<Link *>(which);
    std::vector<Operation *, Memory<Operation *>> unsent;
    for (const Frame &frame : link->frames)
        if (frame.payload) unsent.push_back(frame.payload);
    lent_.remove_if([&](Lent &lent) {
        if (lent.link != link) return false;
        lent.number = 0;
        unsent.push_back(lent.operation);
        return true;
    });
    List<Move> ended;
    for (auto move = moves_.begin(); move != moves_.end();)
        if (const auto one = move++; one->link == link) ended.splice(ended.end(), moves_, one);
    for (Operation *operation : unsent) protocol_.on_sent(operation, false);
    for (const Move &move : ended) report(move, false);
    uint8_t unread[512]; // else the system would break the connection off
    while (link->fd && recv(link->fd.get(), unread, sizeof unread, MSG_DONTWAIT) > 0) {
    }
    links_.remove_if([&](const Link &one) { return &one == link; });
}

Sent Wire::send(rdm::Link *which, const void *head, size_t len, Operation *payload) {
    auto &link = *static_cast<Link *>(which);
    if (link.broken.why) return Sent::broken;
    if (link.frames.size() >= most_frames) return Sent::busy;
    const size_t more = payload ? payload->memory.remaining() : 0;
    const FrameHead first{FrameHead::packet, uint32_t(len + more)};
    Frame frame;
    append(frame.bytes, &first, sizeof first);
    append(frame.bytes, head, len);
    if (payload && len + more > attr_.copy_limit) {
        frame.payload = payload;
    } else if (payload) {
        frame.bytes.resize(frame.bytes.size() + more);
        payload->memory.gather(frame.bytes.data() + sizeof first + len, more);
        traffic_.copied += more;
    }
    const bool later = frame.payload != nullptr;
    link.frames.push_back(std::move(frame));
    flush(link);
    return later ? Sent::later : Sent::now;
}

Sent Wire::announce(rdm::Link *which, const void *head, size_t len, Operation *bulk) {
    auto &link = *static_cast<Link *>(which);
    if (link.broken.why) return Sent::broken;
    if (link.frames.size() >= most_frames) return Sent::busy;
    const Lent *lent = lend(&link, bulk);
    Place place{lent->number, reinterpret_cast<uintptr_t>(lent), bulk->memory.remaining(),
                own_.host, attr_.by_processors};
    iovec pieces[tp::max_iov];
    place.pieces = uint32_t(bulk->memory.describe(pieces, place.bytes));
    for (uint32_t i = 0; i < place.pieces; i++)
        place.piece[i] = {reinterpret_cast<uintptr_t>(pieces[i].iov_base), pieces[i].iov_len};
    const FrameHead first{FrameHead::bulk, uint32_t(sizeof place + len)};
    Frame frame;
    append(frame.bytes, &first, sizeof first);
    append(frame.bytes, &place, sizeof place);
    append(frame.bytes, head, len);
    link.frames.push_back(std::move(frame));
    flush(link);
    return Sent::later;
}

// Payloads are released in progress(), so only there are frames with one sent.
void Wire::flush(Link &link) {
    while (!link.frames.empty() && !link.broken.why) {
        Frame &frame = link.frames.front();
        if (frame.payload && !entered_) break;
        if (frame.payload && !std::exchange(frame.taken, true)) {
            const size_t len = frame.payload->memory.remaining(), at = frame.bytes.size();
            frame.bytes.resize(at + len);
            frame.payload->memory.peek(frame.bytes.data() + at, len);
        }
        const ssize_t sent = ::send(link.fd.get(), frame.bytes.data() + frame.sent,
                                    frame.bytes.size() - frame.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != ENOTCONN)
            link.broken = {.why = "the peer's card is gone"};
        if (sent < 0) break;
        frame.sent += size_t(sent);
        if (frame.sent < frame.bytes.size()) continue;
        Operation *released = frame.payload;
        link.frames.pop_front();
        if (released) protocol_.on_sent(released, true);
    }
    if (!entered_ && (!link.frames.empty() || link.broken.why)) wake_at(0);
}

// The numbers of bulk messages that the peer has fetched or dropped.
void Wire::hear_back(Link &link) {
    uint8_t bytes[512];
    for (;;) {
        const ssize_t got = recv(link.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == ENOTCONN)) break;
        if (got <= 0) {
            if (!link.broken.why) link.broken = {.why = "the peer's card is gone"};
            break;
        }
        append(link.back, bytes, size_t(got));
    }
    uint64_t number;
    size_t at = 0;
    for (; at + sizeof number <= link.back.size(); at += sizeof number) {
        memcpy(&number, link.back.data() + at, sizeof number);
        end_bulk(number);
    }
    link.back.erase(link.back.begin(), link.back.begin() + ptrdiff_t(at));
}

void Wire::end_bulk(uint64_t number) {
    const auto lent = std::find_if(lent_.begin(), lent_.end(),
                                   [&](const Lent &one) { return one.number == number; });
    if (lent == lent_.end()) return;
    Operation *operation = lent->operation;
    lent->number = 0;
    lent_.erase(lent);
    protocol_.on_sent(operation, true);
}

void Wire::tell_done(const std::shared_ptr<Incoming> &from, uint64_t number) {
    if (from->fd) ::send(from->fd.get(), &number, sizeof number, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Wire::accept_all() {
    for (;;) {
        tp::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd) return;
        auto from = std::allocate_shared<Incoming>(Memory<Incoming>());
        from->fd = std::move(fd);
        if (watch(from->fd.get(), EPOLLIN, from.get())) incoming_.push_back(std::move(from));
    }
}

void Wire::receive(Incoming &from, const std::shared_ptr<Incoming> &shared) {
    uint8_t bytes[4096];
    for (size_t all = 0; all < most_at_once;) {
        const ssize_t got = recv(from.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) {
            from.ended = true;
            break;
        }
        all += size_t(got);
        append(from.bytes, bytes, size_t(got));
    }
    size_t at = 0;
    for (FrameHead head; from.bytes.size() - at >= sizeof head; at += sizeof head + head.bytes) {
        memcpy(&head, from.bytes.data() + at, sizeof head);
        if (from.bytes.size() - at - sizeof head < head.bytes) break;
        take_frame(shared, head, from.bytes.data() + at + sizeof head);
    }
    from.bytes.erase(from.bytes.begin(), from.bytes.begin() + ptrdiff_t(at));
    if (from.ended) from.fd = tp::Fd();
}

void Wire::take_frame(const std::shared_ptr<Incoming> &from, const FrameHead &head,
                      const uint8_t *content) {
    if (head.kind == FrameHead::packet) return protocol_.on_packet(content, head.bytes);
    auto *remote = new (Memory<Remote>().allocate(1)) Remote;
    memcpy(static_cast<void *>(&remote->place), content, sizeof remote->place);
    remote->from = from;
    protocol_.on_announced(content + sizeof remote->place, head.bytes - sizeof remote->place,
                           remote);
}

} // namespace dtrain::card
