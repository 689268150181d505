// Windows of the shm transport between processes, and what they need from the host.
// SPDX-License-Identifier: Apache-2.0
#include "child.h"
#include "rig.h"

#include <atomic>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_shm;

namespace {

using namespace dtrain::test;

struct Handle {
    uint8_t bytes[16];
};

dtrain_tp_win_t *attach(Node &node, dtrain_tp_ep_t *creator, const Handle &handle, uint64_t bytes,
                        uint32_t members, uint32_t member) {
    dtrain_tp_win_t *win = nullptr;
    dtrain_status_t status = DTRAIN_ERR_BUSY;
    drive({&node}, [&] {
        status = ops().window_attach(node.dev, creator, handle.bytes, bytes, members, member, &win);
        return status != DTRAIN_ERR_BUSY;
    });
    if (status != DTRAIN_OK) fail_msg("attach: %d %s", status, node.host.text().c_str());
    return win;
}

// What the window tests share: one counter per member, on lines of their own.
struct Board {
    struct alignas(64) Counter {
        std::atomic<uint64_t> value;
    } counters[8];
};

// A child that attaches as `member` and answers each new count of member 0 with the same, asleep
// in between.
void echo(int fd, uint32_t members, uint32_t member, uint64_t bytes, uint64_t last) {
    Node node;
    Bytes creator(node.attr.address_len);
    Handle handle;
    take(fd, creator.data(), creator.size());
    take(fd, &handle, sizeof handle);
    dtrain_tp_ep_t *ep = node.start_connect(creator, 1);
    dtrain_tp_win_t *win = attach(node, ep, handle, bytes, members, member);
    auto *board = static_cast<Board *>(ops().window_address(win));
    give(fd, "r", 1);
    std::atomic<uint64_t> &mine = board->counters[member].value, &first = board->counters[0].value;
    while (mine != last) {
        node.progress();
        if (uint64_t value = first; value != mine) {
            mine = value;
            ops().window_ring(win);
        } else if (ops().arm(node.dev) == DTRAIN_OK && first == mine) {
            pollfd wait{ops().event_fd(node.dev), POLLIN, 0};
            assert_int_equal(poll(&wait, 1, 20'000), 1);
        }
    }
    ops().window_free(win);
}

// Counts up; after each step waits, asleep, until all others have followed. A lost wake-up shows as
// a time-out.
void processes_wake_each_other(void **) {
    constexpr uint32_t members = 4;
    constexpr uint64_t bytes = 100'000, last = 2000;
    std::vector<std::unique_ptr<Child>> children;
    for (uint32_t member = 1; member < members; member++)
        children.push_back(
            std::make_unique<Child>([=](int fd) { echo(fd, members, member, bytes, last); }));
    Node node;
    Handle handle;
    dtrain_tp_win_t *win;
    assert_int_equal(ops().window_create(node.dev, bytes, members, 0, &handle, &win), DTRAIN_OK);
    const Bytes address = node.address();
    for (auto &child : children) {
        give(child->peer, address.data(), address.size());
        give(child->peer, &handle, sizeof handle);
    }
    for (auto &child : children) {
        pollfd ready{child->peer, POLLIN, 0};
        assert_true(drive({&node}, [&] { return poll(&ready, 1, 0) == 1; }));
    }
    auto *board = static_cast<Board *>(ops().window_address(win));
    for (uint64_t count = 1; count <= last; count++) {
        board->counters[0].value = count;
        ops().window_ring(win);
        auto all_followed = [&] {
            for (uint32_t member = 1; member < members; member++)
                if (board->counters[member].value != count) return false;
            return true;
        };
        while (!all_followed()) {
            node.progress();
            if (ops().arm(node.dev) != DTRAIN_OK || all_followed()) continue;
            pollfd wait{ops().event_fd(node.dev), POLLIN, 0};
            assert_int_equal(poll(&wait, 1, 20'000), 1);
        }
    }
    for (auto &child : children) child->join();
    ops().window_free(win);
}

void memory_is_zeroed_aligned_and_shared(void **) {
    for (uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{5 << 20}}) {
        Pair pair;
        Handle handle;
        dtrain_tp_win_t *a, *b = nullptr;
        assert_int_equal(ops().window_create(pair.b.dev, bytes, 2, 0, &handle, &a), DTRAIN_OK);
        dtrain_status_t status = DTRAIN_ERR_BUSY;
        assert_true(drive(pair.both(), [&] {
            status = ops().window_attach(pair.a.dev, pair.to_b, &handle, bytes, 2, 1, &b);
            return status != DTRAIN_ERR_BUSY;
        }));
        assert_int_equal(status, DTRAIN_OK);
        auto *at_a = static_cast<uint8_t *>(ops().window_address(a));
        auto *at_b = static_cast<uint8_t *>(ops().window_address(b));
        assert_ptr_not_equal(at_a, at_b);
        assert_int_equal(reinterpret_cast<uintptr_t>(at_a) % 4096, 0);
        assert_int_equal(reinterpret_cast<uintptr_t>(at_b) % 4096, 0);
        for (uint64_t i = 0; i < bytes; i++) assert_int_equal(at_b[i], 0);
        const Bytes data = pattern(bytes, 3);
        memcpy(at_a, data.data(), bytes);
        assert_memory_equal(at_b, data.data(), bytes);
        ops().window_free(a); // local
        assert_memory_equal(at_b, data.data(), bytes);
        ops().window_ring(b);
        ops().window_free(b);
    }
}

dtrain_status_t attach_status(Pair &pair, const Handle &handle, uint64_t bytes, uint32_t members) {
    dtrain_tp_win_t *win = nullptr;
    dtrain_status_t status = DTRAIN_ERR_BUSY;
    assert_true(drive(pair.both(), [&] {
        status = ops().window_attach(pair.a.dev, pair.to_b, &handle, bytes, members, 1, &win);
        return status != DTRAIN_ERR_BUSY;
    }));
    return status;
}

void wrong_requests_are_refused(void **) {
    Pair pair;
    Handle handle, unknown{};
    dtrain_tp_win_t *win;
    assert_int_equal(ops().window_create(pair.b.dev, 4096, 2, 0, &handle, &win), DTRAIN_OK);
    assert_int_equal(attach_status(pair, handle, 8192, 2), DTRAIN_ERR_MISMATCH);
    assert_int_equal(attach_status(pair, handle, 4096, 3), DTRAIN_ERR_MISMATCH);
    assert_int_equal(attach_status(pair, unknown, 4096, 2), DTRAIN_ERR_NOT_FOUND);
    assert_int_equal(attach_status(pair, handle, 4096, 1), DTRAIN_ERR_INVALID);
    ops().window_free(win);
    assert_int_equal(attach_status(pair, handle, 4096, 2), DTRAIN_ERR_NOT_FOUND);
    assert_int_equal(ops().window_create(pair.b.dev, 0, 2, 0, &handle, &win), DTRAIN_ERR_INVALID);
    assert_int_equal(ops().window_create(pair.b.dev, 4096, 2, 2, &handle, &win),
                     DTRAIN_ERR_INVALID);
    assert_int_equal(ops().window_create(pair.b.dev, UINT64_MAX, 2, 0, &handle, &win),
                     DTRAIN_ERR_INVALID);
    pair.b.close();
    assert_int_equal(attach_status(pair, handle, 4096, 2), DTRAIN_ERR_PEER);
}

bool write_file(const char *path, const std::string &text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text.data(), text.size()) == ssize_t(text.size());
    if (fd >= 0) close(fd);
    return written;
}

// A mount namespace of this process's own, as root or through a user namespace.
bool own_mounts() {
    const std::string uid = std::to_string(getuid()), gid = std::to_string(getgid());
    if (unshare(CLONE_NEWNS) != 0 &&
        !(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/setgroups", "deny") &&
          write_file("/proc/self/uid_map", uid + " " + uid + " 1") &&
          write_file("/proc/self/gid_map", gid + " " + gid + " 1")))
        return false;
    return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// A folder of 1 MiB takes a window of 256 KiB, and says what to do about one of 4 MiB.
void check_small_folder(const char *folder) {
    Node node("", {{"shm.directory", folder}});
    Handle handle;
    dtrain_tp_win_t *win, *large;
    assert_int_equal(ops().window_create(node.dev, 256 << 10, 2, 0, &handle, &win), DTRAIN_OK);
    memset(ops().window_address(win), 1, 256 << 10);
    assert_int_equal(ops().window_create(node.dev, 4 << 20, 2, 0, &handle, &large),
                     DTRAIN_ERR_LIMIT);
    const std::string text = node.host.text();
    assert_non_null(strstr(text.c_str(), folder));
    assert_non_null(strstr(text.c_str(), "make it larger"));
    ops().window_free(win);
    assert_int_equal(ops().window_create(node.dev, 512 << 10, 2, 0, &handle, &win), DTRAIN_OK);
    ops().window_free(win);
}

void a_folder_that_is_too_small_is_named(void **) {
    char folder[] = "/tmp/dtrain_test_XXXXXX";
    assert_non_null(mkdtemp(folder));
    bool could_mount = false;
    {
        Child child([&](int fd) {
            char mounted = own_mounts() && mount("none", folder, "tmpfs", 0, "size=1m") == 0;
            give(fd, &mounted, 1);
            if (mounted) check_small_folder(folder);
        });
        take(child.peer, &could_mount, 1);
        child.join();
    }
    assert_int_equal(rmdir(folder), 0);
    if (!could_mount) {
        print_message("not run: no right to mount a tmpfs here\n");
        skip();
    }
}

void a_folder_that_is_missing_is_named(void **) {
    Node node("", {{"shm.directory", "/nonexistent/folder"}});
    Handle handle;
    dtrain_tp_win_t *win;
    assert_int_equal(ops().window_create(node.dev, 4096, 2, 0, &handle, &win), DTRAIN_ERR_CONFIG);
    assert_non_null(strstr(node.host.text().c_str(), "/nonexistent/folder"));
}

// Memory that can still shrink would be a way to make the other side crash.
void unsealed_memory_is_refused(void **) {
    if (access("/dev/shm", W_OK) != 0) { // first, as skip() runs no destructors
        print_message("not run: no /dev/shm here\n");
        skip();
    }
    Node creator("", {{"shm.directory", "/dev/shm"}}), other;
    dtrain_tp_ep_t *ep = other.start_connect(creator.address(), 1);
    Handle handle;
    dtrain_tp_win_t *win, *attached;
    assert_int_equal(ops().window_create(creator.dev, 4096, 2, 0, &handle, &win), DTRAIN_OK);
    dtrain_status_t status = DTRAIN_ERR_BUSY;
    assert_true(drive({&creator, &other}, [&] {
        status = ops().window_attach(other.dev, ep, &handle, 4096, 2, 1, &attached);
        return status != DTRAIN_ERR_BUSY;
    }));
    assert_int_equal(status, DTRAIN_ERR_TRANSPORT);
    ops().window_free(win);
}

} // namespace

int main() {
    subject.plugin = &dtrain_tp_plugin_shm;
    const CMUnitTest tests[] = {
        cmocka_unit_test(processes_wake_each_other),
        cmocka_unit_test(memory_is_zeroed_aligned_and_shared),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(a_folder_that_is_too_small_is_named),
        cmocka_unit_test(a_folder_that_is_missing_is_named),
        cmocka_unit_test(unsealed_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
