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
        return reinterpret_cast<shm::ChannelMemory *>(segment_.data());
    }
    bool is_closed() const {
        pollfd closed{fd_.get(), 0, 0};
        return poll(&closed, 1, 0) == 1 && (closed.revents & POLLHUP) != 0;
    }
    bool is_thrown_out() {
        return drive({&victim_}, [&] { return is_closed(); });
    }
    const shm::Host &host() const { return host_; }

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
            shm::Frame frame{bytes, shm::FrameKind(random() % 4), uint16_t(random() % 5),
                             random() % 4};
            memcpy(memory->data_bytes + head, &frame, sizeof frame);
            head += std::min(shm::frame_size(bytes), shm::data_capacity);
        }
        memory->data.head = random() % 2 ? random() % 64 * 16 : random();
        memory->grants.tail = random() % 2 ? 0 : random();
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

// The other direction: the acceptor lies in its ring of grants.
void bad_grants(void **) {
    Pair pair;
    // Found by its size: the one mapping of a's connection lies in this process, too.
    print_message("through the connector's own mapping\n");
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
    pair.a.send(pair.to_b, 1, pattern(50'000, 1), 1);
    shm::Grant grant{0, 50'001};
    memcpy(mappings[0]->grants_bytes, &grant, sizeof grant);
    mappings[0]->grants.head = sizeof grant;
    assert_int_equal(await({&pair.a}, pair.a, DTRAIN_TP_SEND, 1).status, DTRAIN_ERR_TRANSPORT);
    assert_int_equal(await({&pair.a}, pair.a, DTRAIN_TP_PEER_LOST, Pair::connect_cookie).status,
                     DTRAIN_ERR_TRANSPORT);
    check_alive(pair.b);
}

} // namespace

int main() {
    subject.plugin = &dtrain_tp_plugin_shm;
    const CMUnitTest tests[] = {
        cmocka_unit_test(bad_greetings),     cmocka_unit_test(bad_memory),
        cmocka_unit_test(bad_frames),        cmocka_unit_test(too_much_to_keep),
        cmocka_unit_test(random_scribbling), cmocka_unit_test(bad_grants),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
