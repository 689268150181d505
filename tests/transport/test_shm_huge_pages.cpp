// A kernel that takes long to find huge pages keeps nobody waiting.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "shm/huge_pages.h"

#include <atomic>
#include <chrono>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

using namespace dtrain;

namespace {

constexpr uint64_t size = 2 * shm::huge_page_size;

std::atomic<bool> is_slow{false}, is_a_core_busy{false}, is_in_memory{false};
std::atomic<int> calls{0}, running{0}, waits{0}, waiting{0};

struct Memory {
    tp::Fd fd{memfd_create("test", MFD_CLOEXEC)};
    std::byte *room = nullptr, *data = nullptr;
    Memory() {
        assert_int_equal(ftruncate(fd.get(), off_t(size)), 0);
        void *at = mmap(nullptr, size + shm::huge_page_size, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(at, MAP_FAILED);
        room = static_cast<std::byte *>(at);
        const auto begin = reinterpret_cast<uintptr_t>(at) + shm::huge_page_size - 1;
        data = reinterpret_cast<std::byte *>(begin / shm::huge_page_size * shm::huge_page_size);
        assert_ptr_not_equal(
            mmap(data, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(), 0),
            MAP_FAILED);
    }
    ~Memory() { munmap(room, size + shm::huge_page_size); }
};

// Far more than anything takes on a busy machine.
void wait_until(const auto &is_so) {
    for (int ms = 0; ms < 120'000 && !is_so(); ms++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    assert_true(is_so());
}

// Nothing is collapsed where a busy machine lets a thread wait for longer than it may: tried again.
void take_until(const Memory &memory, const auto &is_so) {
    wait_until([&] {
        if (!is_so()) shm::take_huge_pages(memory.fd, memory.data, size); // returns
        return is_so();
    });
}

void a_slow_kernel_is_left_alone(void **) {
    const Memory memory;
    take_until(memory, [] { return calls == 1; });
    wait_until([] { return running == 0; });
    is_slow = true;
    take_until(memory, [] { return calls == 2; });
    assert_int_equal(running, 1);
    const int waited = waits;
    shm::take_huge_pages(memory.fd, memory.data, size); // does not even ask
    assert_int_equal(waits, waited);
    assert_int_equal(calls, 2);
    is_slow = false;
    wait_until([] { return running == 0; });
    take_until(memory, [] { return calls == 3; });
    wait_until([] { return running == 0; });
}

// The kernel would wait for that core, while no thread could map memory.
void nothing_is_collapsed_while_a_core_is_busy(void **) {
    const Memory memory;
    is_a_core_busy = true;
    take_until(memory, [] { return waiting == 1; });
    const int waited = waits, before = calls;
    shm::take_huge_pages(memory.fd, memory.data, size); // does not even wait
    assert_int_equal(waits, waited);
    // The thread may have begun to wait only just now, and must wait longer than it has patience.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_a_core_busy = false;
    wait_until([] { return waiting == 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the chance to do it late
    assert_int_equal(calls, before);
    take_until(memory, [&] { return calls > before; });
    wait_until([] { return running == 0; });
}

// Dropping a page says nothing about the cores where the program's file has none to drop.
void a_program_in_memory_is_left_alone(void **) {
    const Memory memory;
    const int waited = waits, before = calls;
    is_in_memory = true;
    shm::take_huge_pages(memory.fd, memory.data, size);
    is_in_memory = false;
    assert_int_equal(waits, waited);
    assert_int_equal(calls, before);
}

} // namespace

// Instead of the C library's, so that this machine's load and file systems make no difference.
extern "C" [[gnu::visibility("default")]] int fstatfs(int, struct statfs *system) noexcept {
    *system = {};
    system->f_type = is_in_memory ? TMPFS_MAGIC : EXT4_SUPER_MAGIC;
    return 0;
}
extern "C" [[gnu::visibility("default")]] int posix_fadvise(int, off_t, off_t, int) noexcept {
    waits++;
    waiting++;
    while (is_a_core_busy) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    waiting--;
    return 0;
}
extern "C" [[gnu::visibility("default")]] int madvise(void *at, size_t bytes, int advice) noexcept {
    constexpr int collapse = 25; // MADV_COLLAPSE
    if (advice == collapse) {
        running++;
        calls++;
        while (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto result = int(syscall(SYS_madvise, at, bytes, advice));
    if (advice == collapse) running--;
    return result;
}

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(a_slow_kernel_is_left_alone),
                                cmocka_unit_test(nothing_is_collapsed_while_a_core_is_busy),
                                cmocka_unit_test(a_program_in_memory_is_left_alone)};
    return cmocka_run_group_tests_name("huge pages", tests, nullptr, nullptr);
}
