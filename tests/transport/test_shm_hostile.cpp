// A peer of the shm transport that breaks the protocol, in the greeting or in shared memory: it
// loses its connection, and nothing else happens.
// SPDX-License-Identifier: Apache-2.0
#include "shm/channel.h"
#include "shm/messages.h"
#include "shm/secret.h"

#include "rig.h"

#include <functional>
#include <poll.h>
#include <random>
#include <sys/mman.h>

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_shm;

namespace {

using namespace dtrain::test;
namespace shm = dtrain::shm;

// Speaks the connector's part by hand.
class Intruder {
  public:
    explicit Intruder(Node &victim) : victim_(victim), host_(fake_.table()) {
        memcpy(&transcript_.acceptor, victim.address().data(), sizeof(shm::Address));
        assert_int_equal(shm::make_address(host_, transcript_.connector), DTRAIN_OK);
        assert_int_equal(shm::connect_to(host_, transcript_.acceptor.name, fd_), DTRAIN_OK);
    }
    template <class T> void say(const T &message, int pass = -1) {
        assert_true(shm::send_message(fd_, &message, sizeof message, pass));
    }
    template <class T> bool hear(T &message) {
        shm::Fd passed;
        ssize_t n = -EAGAIN;
        drive({&victim_}, [&] {
            n = shm::receive_message(fd_, &message, sizeof message, passed);
            return n != -EAGAIN;
        });
        return n == sizeof message;
    }
    void greet() {
        shm::Hello hello;
        hello.from = transcript_.connector;
        hello.nonce_address = shm::address_of(transcript_.connector_nonce);
        say(hello);
        shm::Challenge challenge;
        assert_true(hear(challenge));
    }
    // As a good peer would, up to a working connection.
    shm::ChannelMemory *connect() {
        greet();
        shm::Fd memory;
        assert_int_equal(
            shm::Segment::create(host_, sizeof(shm::ChannelMemory), "", segment_, memory),
            DTRAIN_OK);
        say(shm::Proof{}, memory.get());
        shm::Ready ready;
        assert_true(hear(ready));
        in_reach = ready.in_reach == 1;
        return reinterpret_cast<shm::ChannelMemory *>(segment_.data());
    }
    bool is_closed() const {
        pollfd closed{fd_.get(), 0, 0};
        return poll(&closed, 1, 0) == 1 && (closed.revents & POLLHUP) != 0;
    }
    bool is_thrown_out() {
        return drive({&victim_}, [&] { return is_closed(); });
    }
    void vanish() { fd_.reset(); }
    const shm::Host &host() const { return host_; }

    bool in_reach = false; // for the victim

  private:
    Node &victim_;
    FakeHost fake_;
    shm::Host host_;
    shm::Fd fd_;
    shm::Transcript transcript_;
    shm::Segment segment_;
};

// After all that, others are served as before.
void check_alive(Node &victim) {
    victim.done.clear();
    Node friendly;
    dtrain_tp_ep_t *ep = friendly.start_connect(victim.address(), 1);
    Bytes got(100);
    victim.recv(77, got, 2);
    friendly.send(ep, 77, pattern(100, 5), 3);
    await_ok({&victim, &friendly}, victim, DTRAIN_TP_RECV, 2);
    assert_true(got == pattern(100, 5));
}

void bad_greetings(void **) {
    Node victim;
    const std::function<void(Intruder &)> ways[] = {
        [](Intruder &i) { i.say('x'); },
        [](Intruder &i) { i.say(std::array<char, 4096>{}); },
        [](Intruder &i) { i.say(shm::Proof{}); },
        [](Intruder &i) {
            shm::Hello hello;
            hello.version++;
            i.say(hello);
        },
        [](Intruder &i) { i.greet(), i.say(shm::Hello{}); },
        [](Intruder &i) { i.greet(), i.say(shm::Proof{}); }, // without memory
        [](Intruder &i) { i.greet(), i.say(shm::Proof{}, 0); },
        [](Intruder &i) {
            shm::Proof proof;
            proof.mac[31] = 1;
            i.greet(), i.say(proof);
        },
        [](Intruder &i) { i.connect(), i.say(shm::Hello{}); },
    };
    for (const auto &way : ways) {
        Intruder intruder(victim);
        way(intruder);
        assert_true(intruder.is_thrown_out());
    }
    check_alive(victim);
}

// A peer says hello before it is accepted: who has not does not keep one out, not even for a while.
void a_crowd_gives_way(void **) {
    Node victim;
    std::vector<std::unique_ptr<Intruder>> crowd;
    for (int i = 0; i < 200; i++) crowd.push_back(std::make_unique<Intruder>(victim));
    Intruder(victim).connect();
    assert_true(crowd.front()->is_closed());
    crowd.front().reset();
    Intruder slow(victim); // it has said hello, so the silent ones go first
    slow.greet();
    for (int i = 0; i < 200; i++) crowd.push_back(std::make_unique<Intruder>(victim));
    drive_rounds({&victim}, 1000);
    assert_false(slow.is_closed());
    size_t held = 0;
    for (const auto &one : crowd) held += one && !one->is_closed();
    assert_in_range(held, 1, 64);
}

void who_says_nothing_has_three_seconds(void **) {
    Node victim;
    Intruder intruder(victim);
    const int64_t begin = now_ns();
    assert_true(drive({&victim}, [&] { return intruder.is_closed(); }));
    assert_true(now_ns() - begin > 2'900'000'000);
}

// Memory that is too small, or could become so.
void bad_memory(void **) {
    struct Memory {
        uint64_t size;
        int seals;
    };
    constexpr int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const uint64_t good = shm::round_up(sizeof(shm::ChannelMemory), 4096);
    Node victim;
    for (Memory memory : {Memory{good, 0}, Memory{good, F_SEAL_GROW | F_SEAL_SEAL},
                          Memory{good - 4096, all}, Memory{0, all}, Memory{good + 4096, all}}) {
        Intruder intruder(victim);
        intruder.greet();
        shm::Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        assert_int_equal(ftruncate(fd.get(), off_t(memory.size)), 0);
        assert_int_equal(fcntl(fd.get(), F_ADD_SEALS, memory.seals), 0);
        intruder.say(shm::Proof{}, fd.get());
        assert_true(intruder.is_thrown_out());
    }
    check_alive(victim);
}

void put(shm::ChannelMemory *memory, uint64_t &head, const shm::Frame &frame) {
    memcpy(memory->data_bytes + head, &frame, sizeof frame);
    head += shm::frame_size(frame.bytes);
}

void bad_frames(void **) {
    using enum shm::FrameKind;
    const std::vector<shm::Frame> ways[] = {
        {{0, shm::FrameKind{0}, 0, 1}},                           // no such kind
        {{UINT32_MAX, eager, 0, 1}},                              // longer than the ring
        {{shm::eager_limit + 1, eager, 0, 1}},                    // longer than allowed
        {{8, offer, 0, 1}},                                       // of another length
        {{16, offer, shm::max_offers, 1}},                        // slot out of bounds
        {{16, offer, 3, 1}, {16, offer, 3, 2}},                   // slot in use
        {{16, piece, 3, 1}},                                      // of nothing
        {{0, copied, 3, 1}},                                      //
        {{16, offer, 3, 5}, {0, copied, 3, 5}},                   // not to be copied directly
        {{16, piece, UINT16_MAX, 1}},                             //
        {{16, offer, 3, 1}, {16, piece, 3, 1}},                   // not asked for
        {{16, offer, 3, 5}, {64, piece, 3, 5}, {0, eager, 0, 6}}, // more than asked for
    };
    Node victim;
    for (const auto &frames : ways) {
        Intruder intruder(victim);
        shm::ChannelMemory *memory = intruder.connect();
        Bytes got(1000);
        victim.recv(5, got, 1);
        uint64_t head = 0;
        for (const shm::Frame &frame : frames) put(memory, head, frame);
        memory->data.head = std::min(shm::round_up(head, 16), shm::data_capacity);
        assert_true(intruder.is_thrown_out());
        ops().cancel(victim.dev, 1);
        drive_rounds({&victim}, 10);
    }
    check_alive(victim);
}

void offer_directly(shm::ChannelMemory *memory, uint64_t &head, uint64_t length, const void *from) {
    const shm::Offer offer{length, reinterpret_cast<uintptr_t>(from)};
    memcpy(memory->data_bytes + head + sizeof(shm::Frame), &offer, sizeof offer);
    put(memory, head, {sizeof offer, shm::FrameKind::offer, 3, 5});
    memory->data.head = head;
}

shm::Grant next_grant(Node &victim, shm::ChannelMemory *memory, uint64_t &tail) {
    assert_true(drive({&victim}, [&] { return memory->grants.head > tail; }));
    shm::Grant grant;
    memcpy(&grant, memory->grants_bytes + tail, sizeof grant);
    memory->grants.tail = tail += sizeof grant;
    return grant;
}

// Not everywhere may a process copy as if from another one.
void need_direct_copies() {
    static const bool in_reach = [] { // skip() runs no destructors
        Node victim;
        Intruder intruder(victim);
        intruder.connect();
        return intruder.in_reach;
    }();
    if (!in_reach) skip();
}

constexpr uint64_t direct_bytes = shm::least_direct; // fits the ring, too

// It says that it has copied, and how, when it should not.
void bad_ends_of_copies(void **) {
    need_direct_copies();
    using enum shm::FrameKind;
    const std::vector<shm::Frame> ways[] = {
        {{16, copied, 3, 5}},                   // with something
        {{0, copied, 4, 5}},                    // something else
        {{16, piece, 3, 5}},                    // pieces, too
        {{0, copied, 3, 5}, {0, copied, 3, 5}}, // twice
        {{0, not_copied, 3, 5}, {0, copied, 3, 5}},
    };
    const Bytes sent = pattern(direct_bytes, 1);
    Node victim;
    for (const auto &frames : ways) {
        Intruder intruder(victim);
        shm::ChannelMemory *memory = intruder.connect();
        Bytes got(direct_bytes);
        uint64_t head = 0, tail = 0;
        victim.recv(5, got, 1);
        offer_directly(memory, head, direct_bytes, sent.data());
        assert_true(next_grant(victim, memory, tail).address != 0);
        for (const shm::Frame &frame : frames) put(memory, head, frame);
        memory->data.head = head;
        assert_true(intruder.is_thrown_out());
        assert_true(drive({&victim}, [&] { return victim.take(DTRAIN_TP_RECV, 1); }));
    }
    check_alive(victim);
}

// What cannot be read, or was not written by the sender as it says, comes in pieces.
void failed_copies_are_done_again_in_pieces(void **) {
    need_direct_copies();
    const Bytes sent = pattern(direct_bytes, 2);
    void *const nothing =
        mmap(nullptr, direct_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(nothing != MAP_FAILED);
    Node victim;
    for (bool readable : {false, true}) {
        Intruder intruder(victim);
        shm::ChannelMemory *memory = intruder.connect();
        Bytes got(direct_bytes);
        uint64_t head = 0, tail = 0;
        victim.recv(5, got, 1);
        offer_directly(memory, head, direct_bytes, readable ? sent.data() : nothing);
        assert_true(next_grant(victim, memory, tail).address != 0);
        drive_rounds({&victim}, 10);
        const auto end = readable ? shm::FrameKind::not_copied : shm::FrameKind::copied;
        put(memory, head, {0, end, 3, 5});
        memory->data.head = head;
        const shm::Grant again = next_grant(victim, memory, tail);
        assert_true(again.slot == 3 && again.bytes == direct_bytes && again.address == 0);
        for (uint64_t at = 0; at < direct_bytes; at += shm::max_piece) {
            memcpy(memory->data_bytes + head + sizeof(shm::Frame), &sent[at], shm::max_piece);
            put(memory, head, {shm::max_piece, shm::FrameKind::piece, 3, 5});
        }
        memory->data.head = head;
        await_ok({&victim}, victim, DTRAIN_TP_RECV, 1);
        assert_true(got == sent);
    }
    munmap(nothing, direct_bytes);
    check_alive(victim);
}

// More than the acceptor has to keep.
void too_much_to_keep(void **) {
    Node victim;
    Intruder intruder(victim);
    shm::ChannelMemory *memory = intruder.connect();
    uint64_t head = 0;
    bool thrown_out = false;
    while (!thrown_out && head < 100'000 * sizeof(shm::Frame)) {
        shm::Frame frame{0, shm::FrameKind::eager, 0, 1};
        memcpy(memory->data_bytes + head % shm::data_capacity, &frame, sizeof frame);
        memory->data.head = head += sizeof frame;
        assert_true(drive({&victim}, [&] {
            thrown_out = intruder.is_closed();
            return thrown_out || memory->data.tail == head;
        }));
    }
    assert_true(thrown_out);
    assert_true(head <= 2 * shm::credit / 128 * sizeof(shm::Frame));
    check_alive(victim);
}

// Whatever is in the memory, and however it changes: no crash, and the others live on.
void random_scribbling(void **) {
    const char *given = getenv("DTRAIN_TEST_SEED");
    const uint64_t seed = given ? strtoull(given, nullptr, 10) : std::random_device{}();
    print_message("seed %llu\n", static_cast<unsigned long long>(seed));
    std::mt19937_64 random(seed);
    std::vector<Bytes> got(4, Bytes(3000)); // outlives the node, which may still write there
    Node victim;
    for (int round = 0; round < 300; round++) {
        Intruder intruder(victim);
        shm::ChannelMemory *memory = intruder.connect();
        for (uint64_t tag = 0; tag < got.size(); tag++) victim.recv(tag, got[tag], tag);
        for (uint64_t head = 0; head < shm::data_capacity;) {
            uint32_t bytes = uint32_t(random() % 8 == 0 ? random() : random() % 100);
            shm::Frame frame{bytes, shm::FrameKind(random() % 6), uint16_t(random() % 5),
                             random() % 4};
            memcpy(memory->data_bytes + head, &frame, sizeof frame);
            head += std::min(shm::frame_size(bytes), shm::data_capacity);
        }
        memory->data.head = random() % 2 ? random() % 64 * 16 : random();
        memory->grants.tail = random() % 2 ? 0 : random();
        const uint64_t taken = random() % 2 ? 0 : random();
        memcpy(static_cast<void *>(&memory->parts), &taken, sizeof taken);
        victim.progress();
        memory->data.head = random();
        memory->connector.asleep = 1;
        drive_rounds({&victim}, 5);
        for (uint64_t tag = 0; tag < got.size(); tag++) ops().cancel(victim.dev, tag);
        ops().purge(victim.dev, 0, 0);
        drive_rounds({&victim}, 2);
    }
    check_alive(victim);
}

// The memory of the one connection between two nodes of this process, found by its size.
shm::ChannelMemory *channel_memory() {
    char line[512];
    uint64_t size = shm::round_up(sizeof(shm::ChannelMemory), 4096);
    std::vector<shm::ChannelMemory *> mappings;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long first, last;
        if (sscanf(line, "%lx-%lx", &first, &last) == 2 && strstr(line, "memfd:dtrain") &&
            last - first == size)
            mappings.push_back(reinterpret_cast<shm::ChannelMemory *>(first));
    }
    fclose(maps);
    assert_int_equal(mappings.size(), 2); // both ends
    return mappings[0];
}

void give(shm::ChannelMemory *memory, const shm::Grant &grant) {
    memcpy(memory->grants_bytes, &grant, sizeof grant);
    memory->grants.head = sizeof grant;
}

// The other direction: the acceptor lies in its ring of grants.
void bad_grants(void **) {
    for (shm::Grant grant : {shm::Grant{0, 20'001}, {1, 20'000}, {0, 20'000, 4096}}) {
        Pair pair;
        shm::ChannelMemory *memory = channel_memory();
        pair.a.send(pair.to_b, 1, pattern(20'000, 1), 1); // too short to be copied directly
        give(memory, grant);
        assert_int_equal(await({&pair.a}, pair.a, DTRAIN_TP_SEND, 1).status, DTRAIN_ERR_TRANSPORT);
        assert_int_equal(await({&pair.a}, pair.a, DTRAIN_TP_PEER_LOST, Pair::connect_cookie).status,
                         DTRAIN_ERR_TRANSPORT);
        check_alive(pair.b);
    }
}

// What cannot be written to is no signal, and the receiver hears of it.
void a_grant_of_nowhere(void **) {
    need_direct_copies();
    Pair pair;
    shm::ChannelMemory *memory = channel_memory();
    pair.a.send(pair.to_b, 1, pattern(direct_bytes, 1), 1);
    give(memory, {0, direct_bytes, 4096});
    drive_rounds({&pair.a}, 10);
    shm::Frame end;
    memcpy(&end, memory->data_bytes + shm::frame_size(sizeof(shm::Offer)), sizeof end);
    assert_true(end.kind == shm::FrameKind::not_copied && end.slot == 0);
    assert_int_equal(pair.a.done.size(), 0);
}

// A process that ends while it waits for an answer has left; nothing is wrong with it.
void who_asks_and_ends_has_left(void **) {
    Node victim;
    Intruder intruder(victim);
    intruder.connect();
    intruder.say(shm::WindowAsk{});
    intruder.vanish();
    const auto says = [&](const char *text) {
        return victim.host.text().find(text) != std::string::npos;
    };
    assert_true(drive({&victim}, [&] { return says("is lost"); }));
    assert_true(says("it left"));
    check_alive(victim);
}

} // namespace

int main() {
    subject.plugin = &dtrain_tp_plugin_shm;
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_gives_way),
        cmocka_unit_test(who_says_nothing_has_three_seconds),
        cmocka_unit_test(bad_greetings),
        cmocka_unit_test(bad_memory),
        cmocka_unit_test(bad_frames),
        cmocka_unit_test(too_much_to_keep),
        cmocka_unit_test(random_scribbling),
        cmocka_unit_test(bad_grants),
        cmocka_unit_test(bad_ends_of_copies),
        cmocka_unit_test(failed_copies_are_done_again_in_pieces),
        cmocka_unit_test(a_grant_of_nowhere),
        cmocka_unit_test(who_asks_and_ends_has_left),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
