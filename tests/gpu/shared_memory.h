// Memory of GPUs that ranks share, and which way operations on it have taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/gpu.h"
#include "contract/ranks.h"

#include <string>

namespace gpu {

// Registered with DTRAIN_MEM_SHARED: of the library, or a part of an allocation of the program.
class Shared {
  public:
    enum class Kind { created, registered };
    Shared(dtrain_context_t *context, size_t bytes, int device = 0, Kind kind = Kind::created)
        : bytes_(bytes), device_(device) {
        dtrain_mem_params_t params;
        DTRAIN_INIT(&params);
        params.mem_type = DTRAIN_MEM_CUDA;
        params.device = device;
        params.length = bytes;
        params.flags = DTRAIN_MEM_SHARED;
        if (kind == Kind::created) {
            OK(dtrain_mem_create(context, &params, &mem_));
        } else {
            own_ = std::make_unique<Buffer>(bytes + 2 * margin, device);
            params.address = own_->address() + margin;
            OK(dtrain_mem_register(context, &params, &mem_));
        }
    }
    template <class T>
    Shared(dtrain_context_t *context, const std::vector<T> &data, int device = 0,
           Kind kind = Kind::created)
        : Shared(context, data.size() * sizeof(T), device, kind) {
        write(data.data());
    }
    ~Shared() { OK(dtrain_mem_deregister(mem_)); }
    Shared(const Shared &) = delete;

    uint8_t *address() const { return static_cast<uint8_t *>(dtrain_mem_address(mem_)); }
    dtrain_mem_t *mem() const { return mem_; }
    void write(const void *data) {
        const Current current(device_);
        call<Address, const void *, size_t>("cuMemcpyHtoD_v2", reinterpret_cast<Address>(address()),
                                            data, bytes_);
    }
    template <class T> std::vector<T> values() const {
        std::vector<T> all(bytes_ / sizeof(T));
        const Current current(device_);
        call<void *, Address, size_t>("cuMemcpyDtoH_v2", all.data(),
                                      reinterpret_cast<Address>(address()), bytes_);
        return all;
    }

  private:
    static constexpr size_t margin = 512;
    const size_t bytes_;
    const int device_;
    std::unique_ptr<Buffer> own_;
    dtrain_mem_t *mem_ = nullptr;
};

// What the context says of all its GPUs together: "to_host_bytes", "reduced_bytes".
inline uint64_t counted(dtrain_context_t *context, const char *name) {
    std::string text(16384, '\0');
    text.resize(dtrain_context_describe(context, text.data(), text.size()));
    const std::string key = std::string("\"") + name + "\": ";
    uint64_t sum = 0;
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
        sum += std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
    return sum;
}

} // namespace gpu
