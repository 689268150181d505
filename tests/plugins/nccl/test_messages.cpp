// Messages through the tables of all versions: every size comes whole, in order, where it belongs.
// SPDX-License-Identifier: Apache-2.0
#include "sides.h"

#include "temporary_folder.h"

#include <fstream>
#include <random>
#include <thread>

using namespace dtrain::test;
namespace nccl = dtrain::nccl;

namespace {

void sizes_are_those_of_nccl(void **) {
    static_assert(sizeof(nccl::Properties6) == 48 && sizeof(nccl::Table6) == 136);
    static_assert(sizeof(nccl::Properties8) == 64 && sizeof(nccl::Table8) == 152);
    static_assert(sizeof(nccl::Properties11) == 112 && sizeof(nccl::Table11) == 176);
    static_assert(offsetof(nccl::Properties11, max_p2p_bytes) == 88);
    static_assert(offsetof(nccl::Properties12, rail) == 124);
    static_assert(offsetof(nccl::Table11, send) == 10 * sizeof(void *));
    for (int version = oldest; version <= newest; version++) {
        const char *name = *static_cast<const char *const *>(load_symbol_of(version));
        assert_string_equal(name, "dtrain");
    }
}

// Around the thresholds of tcp and of the RDMA transports.
constexpr size_t sizes[] = {0,     1,     7,     64,    4095,  4096,   8191,    8193,
                            16384, 16385, 65535, 65536, 65537, 262144, 1 << 20, (4 << 20) + 3};

void every_version(int version, const Settings &settings = {}) {
    print_message("version %d\n", version);
    two_sides(
        {.version = version, .settings = settings},
        [](Side &side) {
            Described device;
            assert_true(side.net->devices() >= 1);
            assert_true(side.net->describe(0, device) == Result::success);
            assert_true(!device.name.empty() && device.speed > 0);
            assert_int_equal(device.memory, nccl::memory_host);
            assert_int_equal(device.parts, 1);
            assert_true(side.net->describe(side.net->devices(), device) ==
                        Result::invalid_argument);
            End end(*side.net, false);
            side.accept(end);
            for (size_t i = 0; i < std::size(sizes); i++) {
                Bytes into(sizes[i] + 3, 0xEE);
                void *registration = nullptr;
                assert_true(side.net->reg(end.comm, into.data(), into.size(), registration) ==
                            Result::success);
                void *request = end.receive({&into}, {int(i)});
                assert_int_equal(end.await(request)[0], sizes[i]);
                Bytes expected = pattern(sizes[i], i);
                expected.resize(into.size(), 0xEE);
                assert_true(into == expected);
                assert_true(side.net->flush(end.comm, into.data(), request) == Result::success);
                assert_null(request);
                assert_true(side.net->dereg(end.comm, registration) == Result::success);
            }
            side.meet();
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            for (size_t i = 0; i < std::size(sizes); i++) {
                Bytes bytes = pattern(sizes[i], i);
                void *registration = nullptr;
                if (!bytes.empty())
                    assert_true(side.net->reg(end.comm, bytes.data(), bytes.size(), registration) ==
                                Result::success);
                assert_int_equal(end.await(end.send(bytes, int(i), registration))[0], sizes[i]);
                assert_true(side.net->dereg(end.comm, registration) == Result::success);
            }
            side.meet();
            end.close();
            side.finish();
        });
}

void all_versions_move_all_sizes(void **) {
    for (int version = oldest; version <= newest; version++) every_version(version);
}

struct Network {
    const char *what;
    Settings settings;
    const char *needs = "tcp"; // the plugin, which is built where its library is
};
const Network networks[] = {
    {"tcp, two rails", {{"DTRAIN_TRANSPORTS", "tcp"}, {"DTRAIN_TCP_INTERFACE", "lo,lo"}}},
    {"tcp, its own choice of interface",
     {{"DTRAIN_TRANSPORTS", "tcp"}, {"DTRAIN_TCP_INTERFACE", ""}}},
    {"tcp with a secret", {{"DTRAIN_SECRET", "open sesame"}}},
    {"ofi", {{"DTRAIN_TRANSPORTS", "ofi"}, {"DTRAIN_OFI_PROVIDER", "tcp;ofi_rxm"}}, "ofi"},
    {"ofi with a secret",
     {{"DTRAIN_TRANSPORTS", "ofi"}, {"DTRAIN_OFI_PROVIDER", "tcp;ofi_rxm"}, {"DTRAIN_SECRET", "x"}},
     "ofi"},
    {"ucx", {{"DTRAIN_TRANSPORTS", "ucx"}, {"DTRAIN_UCX_TLS", "tcp"}}, "ucx"},
    {"ucx with a secret",
     {{"DTRAIN_TRANSPORTS", "ucx"}, {"DTRAIN_UCX_TLS", "tcp"}, {"DTRAIN_SECRET", "x"}},
     "ucx"},
};

bool crashes_here([[maybe_unused]] const Network &network) {
#ifdef __SANITIZE_THREAD__
    return std::string(network.needs) == "ucx";
#else
    return false;
#endif
}

void other_networks_move_all_sizes(void **) {
    for (const Network &network : networks) {
        const std::string file =
            std::string(PLUGIN_FOLDER "/libdtrain_transport_") + network.needs + ".so";
        const char *why = access(file.c_str(), R_OK) != 0 ? "it is not built"
                          : crashes_here(network)         ? "it crashes under TSan"
                                                          : nullptr;
        if (why != nullptr) {
            print_message("skipped: %s (%s)\n", network.what, why);
            continue;
        }
        print_message("%s\n", network.what);
        every_version(newest, network.settings);
    }
}

// A transport that moves a message only in later calls: it arrives though its sender makes none.
void a_message_leaves_while_its_sender_rests(void **) {
    const TemporaryFolder folder;
    const std::string options = folder.file("options");
    std::ofstream(options) << "plugin.fault.over=tcp\nplugin.fault.delay=20\n";
    two_sides(
        {.version = newest,
         .settings = {{"DTRAIN_TRANSPORTS", "fault"}, {"DTRAIN_OPTIONS", options}}},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            for (size_t i = 0; i < 10; i++) {
                Bytes into(sizes[i]);
                assert_int_equal(end.await(end.receive({&into}, {int(i)}))[0], sizes[i]);
                assert_true(into == pattern(sizes[i], i));
                side.meet();
            }
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            for (size_t i = 0; i < 10; i++) {
                Bytes bytes = pattern(sizes[i], i);
                void *request = end.send(bytes, int(i));
                side.meet(); // the other side has it
                end.await(request);
            }
            end.close();
            side.finish();
        });
}

// Both sides compute the same plan from the seed: groups of receives, each with distinct tags.
struct Planned {
    std::vector<int> tags;
    std::vector<size_t> sizes;
};
std::vector<Planned> make_plan(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Planned> plan(60);
    for (Planned &group : plan) {
        std::vector<int> tags = {0, 1, -1, 77, 1 << 30, 5, 6, 7, 8, 9};
        std::shuffle(tags.begin(), tags.end(), random);
        tags.resize(1 + random() % nccl::most_receives);
        group.tags = tags;
        for (size_t i = 0; i < tags.size(); i++)
            group.sizes.push_back(random() >> (45 + random() % 19) & 0x7FFFF);
    }
    return plan;
}
uint64_t content(size_t group, size_t i) { return group * 16 + i; }

void receive_plan(Side &side, uint64_t seed, std::mt19937_64 &random) {
    const std::vector<Planned> plan = make_plan(seed);
    End end(*side.net, false);
    side.accept(end);
    struct Flying {
        size_t group;
        std::vector<Bytes> into;
        void *request;
    };
    std::vector<std::unique_ptr<Flying>> flying;
    const auto check = [&](size_t which) {
        Flying &one = *flying[which];
        const std::vector<int> got = end.await(one.request);
        for (size_t i = 0; i < one.into.size(); i++) {
            const size_t size = plan[one.group].sizes[i];
            assert_int_equal(got[i], size);
            Bytes expected = pattern(size, content(one.group, i));
            expected.resize(one.into[i].size(), 0xEE);
            assert_true(one.into[i] == expected);
        }
        flying.erase(flying.begin() + long(which));
    };
    for (size_t group = 0; group < plan.size(); group++) {
        flying.push_back(std::make_unique<Flying>(Flying{group, {}, nullptr}));
        Flying &one = *flying.back();
        for (const size_t size : plan[group].sizes)
            one.into.emplace_back(size + random() % 9, 0xEE);
        std::vector<Bytes *> into;
        for (Bytes &bytes : one.into) into.push_back(&bytes);
        one.request = end.receive(into, plan[group].tags);
        if (flying.size() == 24) check(random() % flying.size()); // not the oldest first
    }
    while (!flying.empty()) check(random() % flying.size());
    side.meet();
    end.close();
}

void send_plan(Side &side, uint64_t seed, std::mt19937_64 &random) {
    const std::vector<Planned> plan = make_plan(seed);
    End end(*side.net, true);
    side.connect(end);
    struct Flying {
        Bytes bytes;
        void *request;
    };
    std::vector<std::unique_ptr<Flying>> flying;
    for (size_t group = 0; group < plan.size(); group++) {
        std::vector<size_t> order(plan[group].tags.size());
        for (size_t i = 0; i < order.size(); i++) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        for (const size_t i : order) {
            flying.push_back(std::make_unique<Flying>(
                Flying{pattern(plan[group].sizes[i], content(group, i)), nullptr}));
            Flying &one = *flying.back();
            one.request = end.send(one.bytes, plan[group].tags[i]);
        }
        while (flying.size() > 40) {
            const size_t which = random() % flying.size();
            int done = 0;
            assert_true(side.net->test(flying[which]->request, done, nullptr) == Result::success);
            if (done) flying.erase(flying.begin() + long(which));
        }
    }
    for (auto &one : flying) end.await(one->request);
    side.meet();
    end.close();
}

uint64_t choose_seed() {
    const char *given = getenv("DTRAIN_TEST_SEED");
    const uint64_t seed = given ? strtoull(given, nullptr, 0) : uint64_t(now_s() * 1e9);
    print_message("seed %llu (DTRAIN_TEST_SEED)\n", static_cast<unsigned long long>(seed));
    return seed;
}

void many_requests_in_groups_and_any_order(void **) {
    const uint64_t seed = choose_seed();
    for (const int version : {6, 9, newest})
        two_sides(
            {.version = version},
            [&](Side &side) {
                std::mt19937_64 random(seed + 1);
                receive_plan(side, seed, random);
                side.finish();
            },
            [&](Side &side) {
                std::mt19937_64 random(seed + 2);
                send_plan(side, seed, random);
                side.finish();
            });
}

// Four threads a process, two in each direction, on one device.
void threads_share_a_device(void **) {
    const uint64_t seed = choose_seed();
    constexpr int threads = 4;
    int pipes[threads][2];
    for (auto &pipe : pipes)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe), 0);
    const auto role = [&](Side &side, bool first) {
        std::vector<std::thread> running;
        for (int i = 0; i < threads; i++)
            running.emplace_back([&, i] {
                Side own{load(newest), pipes[i][first ? 0 : 1]};
                assert_true(own.net->init() == Result::success);
                std::mt19937_64 random(seed + uint64_t(i));
                if (first == (i % 2 == 0))
                    receive_plan(own, seed + uint64_t(i), random);
                else
                    send_plan(own, seed + uint64_t(i), random);
                own.finish();
            });
        for (std::thread &thread : running) thread.join();
        side.finish();
    };
    two_sides(
        {}, [&](Side &side) { role(side, true); }, [&](Side &side) { role(side, false); });
    for (auto &pipe : pipes) close(pipe[0]), close(pipe[1]);
}

// What was sent before the sender left is received, and then nothing more.
void the_last_messages_arrive(void **) {
    two_sides(
        {},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            char byte;
            assert_int_equal(recv(side.fd, &byte, 1, 0), 0); // the sender has ended
            for (uint64_t i = 0; i < 3; i++) {
                Bytes into(1000 * i);
                assert_int_equal(end.await(end.receive({&into}, {0}))[0], into.size());
                assert_true(into == pattern(into.size(), i));
            }
            Bytes into(10);
            assert_true(end.await_failure(end.receive({&into}, {0})) == Result::remote_error);
            assert_true(has_said("the connection is lost"));
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            for (uint64_t i = 0; i < 3; i++) {
                Bytes bytes = pattern(1000 * i, i);
                end.await(end.send(bytes, 0));
            }
            end.close();
            side.finish();
        });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(all_versions_move_all_sizes),
        cmocka_unit_test(other_networks_move_all_sizes),
        cmocka_unit_test(a_message_leaves_while_its_sender_rests),
        cmocka_unit_test(many_requests_in_groups_and_any_order),
        cmocka_unit_test(threads_share_a_device),
        cmocka_unit_test(the_last_messages_arrive),
        cmocka_unit_test(sizes_are_those_of_nccl), // the last: it loads the plugin in this process
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
