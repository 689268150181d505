// Two hosts, which are network namespaces with two networks between them. Needs root.
// SPDX-License-Identifier: Apache-2.0
#include "sides.h"

#include <cstdarg>
#include <fcntl.h>

using namespace dtrain::test;

namespace {

[[gnu::format(printf, 1, 2)]] bool run(const char *format, ...) {
    char command[512];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

// Hosts 0 and 1: 10.96.0.1 and .2 on eth0, 10.96.1.1 and .2 on eth1; and docker0, with the same
// address on both, which leads nowhere.
class Hosts {
  public:
    Hosts() {
        for (int i = 0; i < 2; i++)
            names_[i] = "dn" + std::to_string(getpid()) + "h" + std::to_string(i);
        good = geteuid() == 0;
        for (const std::string &name : names_)
            good = good && run("ip netns add %s 2>/dev/null", name.c_str()) &&
                   run("ip -n %s link set lo up", name.c_str());
        for (int card = 0; good && card < 2; card++)
            good = run("ip -n %s link add eth%d type veth peer name eth%d netns %s",
                       names_[0].c_str(), card, card, names_[1].c_str());
        for (int host = 0; good && host < 2; host++) {
            const char *name = names_[host].c_str();
            good = run("ip -n %s link add docker0 type bridge", name) &&
                   run("ip -n %s addr add 172.17.0.1/16 dev docker0", name) &&
                   run("ip -n %s link set docker0 up", name);
            for (int card = 0; good && card < 2; card++)
                good =
                    run("ip -n %s addr add 10.96.%d.%d/24 dev eth%d", name, card, host + 1, card) &&
                    run("ip -n %s link set eth%d up", name, card);
        }
    }
    ~Hosts() {
        for (const std::string &name : names_) run("ip netns delete %s 2>/dev/null", name.c_str());
    }
    Hosts(const Hosts &) = delete;
    // Moves this process there.
    void enter(int host) const {
        const int fd = open(("/run/netns/" + names_[host]).c_str(), O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(setns(fd, CLONE_NEWNET), 0);
        close(fd);
    }
    bool good;

  private:
    std::string names_[2];
};

// First thing in a case: skip() runs no destructors.
void need_hosts() {
    static const bool good = Hosts().good;
    if (good) return;
    print_message("skipped: network namespaces need root and ip\n");
    skip();
}

void move_messages(Side &side, bool sends, int device) {
    constexpr size_t sizes[] = {0, 100, 70'000, 3 << 20};
    End end(*side.net, sends);
    sends ? side.connect(end, device) : side.accept(end, device);
    for (const size_t size : sizes) {
        Bytes bytes = pattern(size, size);
        if (sends) {
            end.await(end.send(bytes, 0));
            continue;
        }
        Bytes into(size);
        assert_int_equal(end.await(end.receive({&into}, {0}))[0], size);
        assert_true(into == bytes);
    }
    side.meet();
    end.close();
}

struct Case {
    const char *what;
    Settings settings;
    int devices;
};
const Case cases[] = {
    {"addresses found by the plugin", {{"DTRAIN_TCP_INTERFACE", ""}}, 1},
    {"two rails and a secret", {{"DTRAIN_TCP_INTERFACE", "eth0,eth1"}, {"DTRAIN_SECRET", "s"}}, 2},
};

void messages_between_hosts(void **) {
    need_hosts();
    const Hosts hosts;
    for (const Case &one : cases) {
        print_message("%s\n", one.what);
        const auto role = [&](Side &side, bool sends) {
            assert_int_equal(side.net->devices(), one.devices);
            for (int device = 0; device < one.devices; device++) move_messages(side, sends, device);
            side.finish();
        };
        two_sides(
            {.settings = one.settings,
             .receiver_first = [&] { hosts.enter(0); },
             .sender_first = [&] { hosts.enter(1); }},
            [&](Side &side) { role(side, false); }, [&](Side &side) { role(side, true); });
    }
}

// Both listen on the loopback: the error says so, and what to set.
void an_address_that_leads_nowhere(void **) {
    need_hosts();
    const Hosts hosts;
    two_sides(
        {.settings = {{"DTRAIN_TCP_INTERFACE", "lo"}},
         .receiver_first = [&] { hosts.enter(0); },
         .sender_first = [&] { hosts.enter(1); }},
        [](Side &side) {
            NcclHandle handle{};
            void *listener = nullptr;
            assert_true(side.net->listen(0, handle, listener) == Result::success);
            give(side.fd, handle.data(), handle.size());
            side.meet();
            assert_true(side.net->close_listen(listener) == Result::success);
            side.finish();
        },
        [](Side &side) {
            NcclHandle handle = side.take_handle();
            void *comm = nullptr;
            assert_true(side.net->connect(0, handle, comm) == Result::system_error);
            assert_true(has_said("set option tcp.interface there"));
            side.meet();
            side.finish();
        });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(messages_between_hosts),
        cmocka_unit_test(an_address_that_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
