// Somebody on the way between two ranks, who changes what they send: no sum is ever wrong, and the
// error names the rank and the connection. Each connection of this process is led through a relay.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "relay.h"

#include <atomic>
#include <memory>

namespace {

using dtrain::test::Change;
using dtrain::test::Harm;
using dtrain::test::Relay;

// A relay for each port that was dialed, in that order: that of rank 0's control listener first.
class Relays {
  public:
    Relays()
        : thread_([this] {
              while (!over_) {
                  bool moved = false;
                  {
                      const std::lock_guard lock(mutex_);
                      for (auto &[port, relay] : relays_) moved |= relay->work();
                  }
                  if (!moved) usleep(50);
              }
          }) {}
    ~Relays() {
        over_ = true;
        thread_.join();
    }
    uint16_t towards(uint16_t port) {
        const std::lock_guard lock(mutex_);
        for (auto &[to, relay] : relays_)
            if (to == port) return relay->port();
        relays_.emplace_back(port, std::make_unique<Relay>(port));
        return relays_.back().second->port();
    }
    // Flips a bit of what is sent from now on, in both directions if there is no other way to tell:
    // of control connections, or of the others.
    void flip(bool control, bool onward, uint64_t after) {
        const std::lock_guard lock(mutex_);
        for (size_t i = 0; i < relays_.size(); i++) {
            Relay &relay = *relays_[i].second;
            if ((i == 0) != control || relay.passed(onward) == 0) continue;
            Change change;
            change.harm = Harm::flip;
            change.onward = onward;
            change.bit = 6; // of a float, rounding does not hide it
            change.offset = relay.passed(onward) + after;
            relay.plan(change);
        }
    }
    bool flipped() {
        const std::lock_guard lock(mutex_);
        for (auto &[to, relay] : relays_)
            if (relay->harmed()) return true;
        return false;
    }

  private:
    std::mutex mutex_;
    std::vector<std::pair<uint16_t, std::unique_ptr<Relay>>> relays_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

Relays *relays = nullptr;

} // namespace

// The library's connect(): the dynamic linker takes the program's before libc's.
extern "C" __attribute__((visibility("default"))) int connect(int fd, const sockaddr *to,
                                                              socklen_t length) {
    sockaddr_in at{};
    int type = 0; // datagrams only ask for a route
    socklen_t size = sizeof type;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    if (relays != nullptr && type == SOCK_STREAM && to->sa_family == AF_INET &&
        length >= sizeof at) {
        memcpy(&at, to, sizeof at);
        at.sin_port = htons(relays->towards(ntohs(at.sin_port)));
        to = reinterpret_cast<const sockaddr *>(&at);
        length = sizeof at;
    }
    return int(syscall(SYS_connect, fd, to, length));
}

namespace {

constexpr size_t count = 1 << 18;

struct Outcome {
    dtrain_status_t status = DTRAIN_OK;
    std::string text;
};
struct Result {
    bool flipped = false, wrong = false;
    Outcome ranks[2];
};

// All-reduces until one fails or is wrong, or the change has been made and 20 more were right.
Result change_something(const char *protection, bool control, bool onward, uint64_t after) {
    Result result;
    Relays all;
    relays = &all;
    const ranks::Options options = {
        {"transports", "tcp"},          {"secret", "a secret of these two"},
        {"protection", protection},     {"listen.address", "127.0.0.1"},
        {"tcp.interface", "127.0.0.1"}, {"heartbeat.interval", "20ms"}};
    std::atomic<bool> wrong{false}, armed{false};
    ranks::run(2, options, [&](int rank, dtrain_comm_t *comm) {
        std::vector<float> mine(count), sum(count);
        int left = 20;
        for (int call = 0; left > 0 && !wrong; call++) {
            if (call == 3 && rank == 0) {
                all.flip(control, onward, after);
                armed = true;
            }
            for (size_t i = 0; i < count; i++) mine[i] = float(i % 1000) + float(rank);
            const dtrain_status_t s = dtrain_allreduce(comm, mine.data(), sum.data(), count,
                                                       DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr);
            if (s != DTRAIN_OK) {
                result.ranks[rank] = {s, ranks::last_error()};
                return;
            }
            for (size_t i = 0; i < count; i++)
                if (sum[i] != 2 * float(i % 1000) + 1) wrong = true;
            if (armed && all.flipped()) left--;
            if (call > 2000) break;
        }
        // Data still come; the communicator knows nevertheless that it will break.
        for (int i = 0; control && all.flipped() && i < 1000; i++, usleep(10'000)) {
            const dtrain_status_t s = dtrain_comm_status(comm);
            if (s == DTRAIN_OK) continue;
            result.ranks[rank] = {s, ranks::last_error()};
            return;
        }
    });
    result.flipped = all.flipped();
    result.wrong = wrong;
    relays = nullptr;
    return result;
}

void print(const Result &result) {
    for (const Outcome &one : result.ranks)
        if (one.status != DTRAIN_OK)
            print_message("%s: %s\n", dtrain_status_name(one.status), one.text.c_str());
}

bool says(const Outcome &outcome, const char *part) {
    return outcome.text.find(part) != std::string::npos;
}

// The rank that receives what was changed says so; the other one learns it, or sees the connection
// end.
void data_that_was_changed_is_an_error(void **) {
    for (const char *protection : {"auto", "encrypted"})
        for (const bool onward : {true, false}) {
            const Result result = change_something(protection, false, onward, 100'000);
            print(result);
            REQUIRE(result.flipped);
            REQUIRE(!result.wrong);
            bool corrupt = false;
            for (int rank : {0, 1}) {
                const Outcome &one = result.ranks[rank];
                REQUIRE(one.status == DTRAIN_ERR_CORRUPT || one.status == DTRAIN_ERR_PEER);
                if (one.status != DTRAIN_ERR_CORRUPT) continue;
                corrupt = true;
                REQUIRE(says(one, "rank ") && says(one, "127.0.0.1") && says(one, "changed"));
            }
            REQUIRE(corrupt);
        }
}

void control_messages_that_were_changed_are_an_error(void **) {
    for (const bool onward : {true, false}) {
        const Result result = change_something("auto", true, onward, 5);
        print(result);
        REQUIRE(result.flipped);
        REQUIRE(!result.wrong);
        bool corrupt = false;
        for (const Outcome &one : result.ranks) {
            REQUIRE(one.status < 0);
            if (one.status != DTRAIN_ERR_CORRUPT) continue;
            corrupt = true;
            REQUIRE(says(one, "rank ") && says(one, "127.0.0.1") && says(one, "changed"));
        }
        REQUIRE(corrupt);
    }
}

// The planted fault: what the relay does is noticed by nobody but this test.
void without_protection_sums_are_wrong(void **) {
    const Result result = change_something("none", false, true, 100'000);
    REQUIRE(result.flipped);
    REQUIRE(result.wrong);
}

void more_than_a_secret_allows_is_refused(void **) {
    for (const char *protection : {"integrity", "encrypted"}) {
        dtrain_options_t *bag = nullptr;
        OK(dtrain_options_create(&bag));
        OK(dtrain_options_set(bag, "protection", protection));
        dtrain_context_t *context = nullptr;
        FAILS(DTRAIN_ERR_CONFIG, dtrain_context_create(DTRAIN_API_VERSION, bag, &context));
        REQUIRE(ranks::last_error().find("needs a secret") != std::string::npos);
        dtrain_options_destroy(bag);
    }
}

// A process that demands protection gets it, or an error: this transport knows of none.
void a_transport_that_cannot_protect_is_not_used(void **) {
    for (const char *protection : {"auto", "encrypted"}) {
        dtrain_options_t *bag = nullptr;
        OK(dtrain_options_create(&bag));
        OK(dtrain_options_set(bag, "transports", "queue"));
        OK(dtrain_options_set(bag, "plugin.path", PLUGIN_FOLDER));
        OK(dtrain_options_set(bag, "secret", "a secret of these two"));
        OK(dtrain_options_set(bag, "protection", protection));
        dtrain_context_t *context = nullptr;
        if (std::string(protection) == "auto") {
            OK(dtrain_context_create(DTRAIN_API_VERSION, bag, &context));
            OK(dtrain_context_destroy(context));
        } else {
            FAILS(DTRAIN_ERR_CONFIG, dtrain_context_create(DTRAIN_API_VERSION, bag, &context));
            REQUIRE(ranks::last_error().find("cannot protect what it sends") != std::string::npos);
        }
        dtrain_options_destroy(bag);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(data_that_was_changed_is_an_error),
        cmocka_unit_test(control_messages_that_were_changed_are_an_error),
        cmocka_unit_test(without_protection_sums_are_wrong),
        cmocka_unit_test(more_than_a_secret_allows_is_refused),
        cmocka_unit_test(a_transport_that_cannot_protect_is_not_used),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
