// The plugin as NCCL uses it: opened with dlopen(), called through the table of one version.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "nccl/versions/v10.h"
#include "nccl/versions/v11.h"
#include "nccl/versions/v12.h"
#include "nccl/versions/v6.h"
#include "nccl/versions/v7.h"
#include "nccl/versions/v8.h"
#include "nccl/versions/v9.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dtrain::test {

using nccl::Result;
using NcclHandle = std::array<uint8_t, nccl::handle_bytes>;

// What the plugin has told NCCL's log.
inline std::mutex said_mutex;
inline std::string said;
inline void hear(int level, unsigned long, const char *, int, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const std::lock_guard lock(said_mutex);
    said += line;
    said += '\n';
    if (level == nccl::log_warn) print_message("NCCL's log: %s\n", line);
}
inline bool has_said(const char *text) {
    const std::lock_guard lock(said_mutex);
    if (said.find(text) != std::string::npos) return true;
    print_error("\"%s\" is not in: %s\n", text, said.c_str());
    return false;
}

struct Described {
    std::string name;
    uint64_t guid = 0;
    int memory = 0, speed = 0, max_receives = 0, parts = 1;
    size_t most_bytes = 0; // 0: this version has no limit
};

// The functions in one form for all versions.
class Net {
  public:
    virtual ~Net() = default;
    virtual Result init() = 0;
    virtual Result finalize() = 0; // nothing where a version has none
    virtual int devices() = 0;
    virtual Result describe(int device, Described &out) = 0;
    virtual Result listen(int device, NcclHandle &handle, void *&listener) = 0;
    virtual Result connect(int device, NcclHandle &handle, void *&comm) = 0;
    virtual Result accept(void *listener, void *&comm) = 0;
    virtual Result reg(void *comm, void *data, size_t bytes, void *&registration) = 0;
    virtual Result dereg(void *comm, void *registration) = 0;
    virtual Result send(void *comm, void *data, size_t bytes, int tag, void *registration,
                        void *&request) = 0;
    virtual Result receive(void *comm, int count, void **data, const size_t *bytes, int *tags,
                           void **registrations, void *&request) = 0;
    virtual Result flush(void *comm, void *data, void *&request) = 0;
    virtual Result test(void *request, int &done, int *bytes) = 0;
    virtual Result close_send(void *comm) = 0;
    virtual Result close_receive(void *comm) = 0;
    virtual Result close_listen(void *listener) = 0;
};

template <class Table> class TableNet final : public Net {
  public:
    explicit TableNet(void *symbol) : table_(*static_cast<const Table *>(symbol)) {}
    Result init() override {
        if constexpr (Table::version >= 11) {
            nccl::CommConfig config{-1};
            return table_.init(&context_, 42, &config, hear, nullptr);
        } else if constexpr (Table::version == 10) {
            return table_.init(hear, nullptr);
        } else {
            return table_.init(hear);
        }
    }
    Result finalize() override {
        if constexpr (Table::version >= 11) return table_.finalize(context_);
        return Result::success;
    }
    int devices() override {
        int count = -1;
        assert_true(table_.devices(&count) == Result::success);
        return count;
    }
    Result describe(int device, Described &out) override {
        typename Table::Properties got;
        memset(static_cast<void *>(&got), 0x5A, sizeof got);
        const Result result = table_.properties(device, &got);
        if (result != Result::success) return result;
        out.name = got.name;
        out.guid = got.guid;
        out.memory = got.memory;
        out.speed = got.speed;
        out.max_receives = got.max_receives;
        if constexpr (Table::version >= 9) {
            out.parts = got.parts.count;
            assert_int_equal(got.parts.devices[0], device);
            out.most_bytes = got.max_p2p_bytes;
        }
        if constexpr (Table::version >= 7) assert_int_equal(got.device_type, nccl::device_host);
        return result;
    }
    Result listen(int device, NcclHandle &handle, void *&listener) override {
        if constexpr (Table::version >= 11)
            return table_.listen(context_, device, handle.data(), &listener);
        else
            return table_.listen(device, handle.data(), &listener);
    }
    Result connect(int device, NcclHandle &handle, void *&comm) override {
        nccl::DeviceHandle *offload = nullptr;
        nccl::CommConfig config{-1};
        (void)offload;
        (void)config;
        if constexpr (Table::version >= 11)
            return table_.connect(context_, device, handle.data(), &comm, &offload);
        else if constexpr (Table::version == 10)
            return table_.connect(device, &config, handle.data(), &comm, &offload);
        else if constexpr (Table::version >= 7)
            return table_.connect(device, handle.data(), &comm, &offload);
        else
            return table_.connect(device, handle.data(), &comm);
    }
    Result accept(void *listener, void *&comm) override {
        nccl::DeviceHandle *offload = nullptr;
        (void)offload;
        if constexpr (Table::version >= 7)
            return table_.accept(listener, &comm, &offload);
        else
            return table_.accept(listener, &comm);
    }
    Result reg(void *comm, void *data, size_t bytes, void *&registration) override {
        if constexpr (Table::version >= 8)
            return table_.register_memory(comm, data, bytes, nccl::memory_host, &registration);
        else
            return table_.register_memory(comm, data, int(bytes), nccl::memory_host, &registration);
    }
    Result dereg(void *comm, void *registration) override {
        return table_.deregister(comm, registration);
    }
    Result send(void *comm, void *data, size_t bytes, int tag, void *registration,
                void *&request) override {
        if constexpr (Table::version >= 10)
            return table_.send(comm, data, bytes, tag, registration, nullptr, &request);
        else if constexpr (Table::version == 9)
            return table_.send(comm, data, bytes, tag, registration, &request);
        else
            return table_.send(comm, data, int(bytes), tag, registration, &request);
    }
    Result receive(void *comm, int count, void **data, const size_t *bytes, int *tags,
                   void **registrations, void *&request) override {
        using Size = std::conditional_t<(Table::version >= 9), size_t, int>;
        std::vector<Size> sizes(bytes, bytes + std::max(count, 0));
        sizes.resize(sizes.size() + 1); // its data() is not nullptr
        if constexpr (Table::version >= 10)
            return table_.receive(comm, count, data, sizes.data(), tags, registrations, nullptr,
                                  &request);
        else
            return table_.receive(comm, count, data, sizes.data(), tags, registrations, &request);
    }
    Result flush(void *comm, void *data, void *&request) override {
        int bytes = 1;
        void *registration = nullptr;
        return table_.flush(comm, 1, &data, &bytes, &registration, &request);
    }
    Result test(void *request, int &done, int *bytes) override {
        return table_.test(request, &done, bytes);
    }
    Result close_send(void *comm) override { return table_.close_send(comm); }
    Result close_receive(void *comm) override { return table_.close_receive(comm); }
    Result close_listen(void *listener) override { return table_.close_listen(listener); }

  private:
    const Table &table_;
    void *context_ = nullptr;
};

inline constexpr int oldest = 6, newest = 12;

inline void *load_symbol_of(int version) {
    void *file = dlopen(PLUGIN_FOLDER "/hosts/libnccl-net-dtrain.so", RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) print_error("%s\n", dlerror());
    assert_non_null(file);
    void *symbol = dlsym(file, ("ncclNetPlugin_v" + std::to_string(version)).c_str());
    assert_non_null(symbol);
    return symbol;
}

inline std::unique_ptr<Net> load(int version) {
    void *symbol = load_symbol_of(version);
    switch (version) {
    case 6: return std::make_unique<TableNet<nccl::Table6>>(symbol);
    case 7: return std::make_unique<TableNet<nccl::Table7>>(symbol);
    case 8: return std::make_unique<TableNet<nccl::Table8>>(symbol);
    case 9: return std::make_unique<TableNet<nccl::Table9>>(symbol);
    case 10: return std::make_unique<TableNet<nccl::Table10>>(symbol);
    case 11: return std::make_unique<TableNet<nccl::Table11>>(symbol);
    default: return std::make_unique<TableNet<nccl::Table12>>(symbol);
    }
}

} // namespace dtrain::test
