// A device under test: the plugin, the core's services, memory that is filled and read back.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "dtrain_device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

namespace dtrain::test {

using Bytes = std::vector<uint8_t>;

// What is tested; set by main().
struct Subject {
    const dtrain_dv_plugin_t *plugin = nullptr;
    std::map<std::string, const char *> left_out; // case: why
};
extern Subject subject;
inline const dtrain_dv_ops_t &ops() { return *subject.plugin->ops; }

inline int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// The core's services; keeps the last text.
class FakeHost {
  public:
    FakeHost() {
        table_.struct_size = sizeof table_;
        table_.abi = DTRAIN_DV_ABI;
        table_.self = this;
        table_.log = [](void *self, int32_t, const char *line) { of(self).keep(line); };
        table_.option = [](void *, const char *, char *, size_t) {
            return dtrain_status_t{DTRAIN_ERR_NOT_FOUND};
        };
        table_.fail = [](void *self, dtrain_status_t status, const char *text) {
            of(self).keep(text);
            return status;
        };
    }
    FakeHost(const FakeHost &) = delete;
    const dtrain_dv_host_t *table() const { return &table_; }
    std::string text() {
        const std::lock_guard lock(mutex_);
        return text_;
    }

  private:
    static FakeHost &of(void *self) { return *static_cast<FakeHost *>(self); }
    void keep(const char *text) {
        const std::lock_guard lock(mutex_);
        text_ = text;
        if (getenv("DTRAIN_TEST_LOG")) fprintf(stderr, "%s\n", text);
    }
    dtrain_dv_host_t table_{};
    std::mutex mutex_;
    std::string text_;
};

// The first device, its services and one queue.
class Rig {
  public:
    Rig() {
        char names[4096];
        ok(ops().list(host.table(), names, sizeof names));
        name = std::string(names, strcspn(names, ","));
        assert_true(!name.empty());
        attr.struct_size = sizeof attr;
        ok(ops().query(host.table(), name.c_str(), &attr));
        ok(ops().open(host.table(), name.c_str(), &dev));
        ok(ops().queue_own(dev, 1, &queue));
        words = static_cast<uint32_t *>(aligned_alloc(page, page));
        memset(words, 0, page);
        ok(ops().pin(dev, words, page, &word_page));
    }
    ~Rig() {
        ops().release(word_page);
        free(words);
        ops().queue_free(queue);
        ops().close(dev);
    }
    Rig(const Rig &) = delete;

    void ok(dtrain_status_t status) {
        if (status != DTRAIN_OK) fail_msg("status %d: %s", status, host.text().c_str());
    }
    // The call fails like that, and says this.
    void refused(dtrain_status_t got, dtrain_status_t expected, const char *text) {
        if (got != expected || host.text().find(text) == std::string::npos)
            fail_msg("status %d, not %d, or not \"%s\": %s", got, expected, text,
                     host.text().c_str());
    }
    bool has(uint64_t capability) const { return (attr.caps & capability) != 0; }

    // Waits until the queue has done all that it was given.
    void finish() { finish(queue); }
    void finish(dtrain_dv_queue_t *its) {
        const uint32_t n = ++signals;
        ok(ops().signal(its, word_page, 0, n));
        await(0, n);
    }
    uint32_t word(size_t i) const { return __atomic_load_n(words + i, __ATOMIC_ACQUIRE); }
    void store(size_t i, uint32_t value) { __atomic_store_n(words + i, value, __ATOMIC_RELEASE); }
    void await(size_t i, uint32_t value) {
        const int64_t end = now_ns() + 60'000'000'000;
        while (word(i) != value) {
            if (now_ns() > end)
                fail_msg("the word %zu is %u, not %u, after 60 s", i, word(i), value);
            usleep(20);
        }
    }

    static constexpr size_t page = 4096;
    FakeHost host;
    std::string name;
    dtrain_dv_attr_t attr{};
    dtrain_dv_dev_t *dev = nullptr;
    dtrain_dv_queue_t *queue = nullptr;
    dtrain_dv_mem_t *word_page = nullptr;
    uint32_t *words = nullptr;
    uint32_t signals = 0;
};

// Pinned host memory in pages of its own.
class Pinned {
  public:
    Pinned(Rig &rig, size_t bytes)
        : memory(static_cast<uint8_t *>(
              aligned_alloc(Rig::page, (bytes + Rig::page) / Rig::page * Rig::page))) {
        rig.ok(ops().pin(rig.dev, memory, bytes, &mem));
        device = ops().address(mem);
    }
    ~Pinned() {
        ops().release(mem);
        free(memory);
    }
    Pinned(const Pinned &) = delete;
    uint8_t *const memory;
    void *device = nullptr;
    dtrain_dv_mem_t *mem = nullptr;
};

// Memory of the device, between guard bytes.
class OnDevice {
  public:
    static constexpr size_t margin = 256;

    OnDevice(Rig &rig, size_t bytes, size_t offset = 0)
        : rig_(rig), bytes_(bytes), before_(margin + offset), all_(before_ + bytes + margin) {
        rig.ok(ops().alloc(rig.dev, all_, 0, &mem));
        address = static_cast<uint8_t *>(ops().address(mem)) + before_;
        const Pinned pinned(rig, all_);
        memset(pinned.memory, guard, all_);
        rig.ok(ops().copy(rig.queue, ops().address(mem), pinned.device, all_));
        rig.finish();
    }
    ~OnDevice() { ops().release(mem); }
    OnDevice(const OnDevice &) = delete;

    void write(const void *data) {
        const Pinned pinned(rig_, bytes_ + 1);
        if (bytes_ > 0) memcpy(pinned.memory, data, bytes_);
        rig_.ok(ops().copy(rig_.queue, address, pinned.device, bytes_));
        rig_.finish();
    }
    // What it holds. The bytes around it are as they were.
    Bytes read() {
        const Pinned pinned(rig_, all_);
        rig_.ok(ops().copy(rig_.queue, pinned.device, ops().address(mem), all_));
        rig_.finish();
        for (size_t i = 0; i < all_; i++)
            if (i < before_ || i >= before_ + bytes_) assert_int_equal(pinned.memory[i], guard);
        return Bytes(pinned.memory + before_, pinned.memory + before_ + bytes_);
    }

    uint8_t *address = nullptr;
    dtrain_dv_mem_t *mem = nullptr;

  private:
    static constexpr uint8_t guard = 0x5C;
    Rig &rig_;
    const size_t bytes_, before_, all_;
};

// Skips the case on devices that lack a capability. skip() runs no destructors, so before a Rig.
inline void need(uint64_t caps) {
    static const uint64_t all = Rig().attr.caps;
    if ((all & caps) == caps) return;
    print_message("this device has no such capability\n");
    skip();
}

inline uint64_t random_bits() { // xorshift64*
    static uint64_t state = 20260911;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1d;
}
inline Bytes random_bytes(size_t size) {
    Bytes bytes(size);
    for (uint8_t &byte : bytes) byte = uint8_t(random_bits() >> 32);
    return bytes;
}

} // namespace dtrain::test
