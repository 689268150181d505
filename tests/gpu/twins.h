// Pairs of tables that differ in their memory only: all that they answer has the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/gpu.h"
#include "contract/ranks.h"

#include <random>

namespace gpu {

inline const ranks::Options with_device = {{"accelerators", "cuda"}, {"log.level", "error"}};

inline dtrain_table_params_t table_params(uint32_t rule, uint32_t dtype, uint64_t length) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = dtype;
    params.length = length;
    params.rule = rule;
    return params;
}

// Numbers of a dtype, of many magnitudes, as bytes.
class Numbers {
  public:
    explicit Numbers(uint64_t seed) : random_(seed) {}
    std::vector<uint8_t> of(uint32_t dtype, uint64_t count) {
        const size_t size = dtrain_dtype_size(dtype);
        std::vector<uint8_t> bytes(count * size);
        for (uint64_t i = 0; i < count; i++) put(dtype, &bytes[i * size]);
        return bytes;
    }
    uint64_t below(uint64_t limit) { return random_() % limit; }

  private:
    void put(uint32_t dtype, uint8_t *to) {
        const double number = (double(random_() % 2001) - 1000) / double(1 << random_() % 16);
        const auto wide = static_cast<float>(number);
        uint32_t bits = 0;
        std::memcpy(&bits, &wide, sizeof bits);
        const uint64_t any = random_();
        switch (dtype) {
        case DTRAIN_F32: std::memcpy(to, &wide, 4); return;
        case DTRAIN_F64: std::memcpy(to, &number, 8); return;
        case DTRAIN_BF16: bits >>= 16; break;
        case DTRAIN_F16:
            bits = (any & 0x8000) | (0x1000 + (any >> 16) % 0x4800);
            break; // 2^-11 to 2^6
        default: return void(std::memcpy(to, &any, dtrain_dtype_size(dtype)));
        }
        std::memcpy(to, &bits, 2);
    }
    std::mt19937_64 random_;
};

class Twins {
  public:
    Twins(dtrain_comm_t *comm, dtrain_table_params_t params) : params_(params) {
        for (int i = 0; i < 2; i++) {
            params.memory = i == 0 ? DTRAIN_MEM_HOST : DTRAIN_MEM_CUDA;
            OK(dtrain_table_create(comm, i == 0 ? "host" : "device", &params, &tables_[i]));
        }
    }
    ~Twins() {
        for (dtrain_table_t *table : tables_) OK(dtrain_table_destroy(table));
    }
    dtrain_table_t *on_host() const { return tables_[0]; }
    dtrain_table_t *on_device() const { return tables_[1]; }
    template <class F> void both(F &&f) const {
        for (dtrain_table_t *table : tables_) OK(f(table));
    }
    void push(uint64_t first, uint64_t count, const void *g) const {
        both([&](dtrain_table_t *table) {
            return dtrain_table_push(table, first, count, g, nullptr, nullptr);
        });
    }
    // The bytes that f(table, to) gives are the same.
    template <class F> void same(const char *what, uint64_t bytes, F &&f) const {
        std::vector<uint8_t> got[2];
        for (int i = 0; i < 2; i++) {
            got[i].resize(bytes);
            OK(f(tables_[i], got[i].data()));
        }
        const auto at = std::mismatch(got[0].begin(), got[0].end(), got[1].begin()).first;
        if (at == got[0].end()) return;
        std::fprintf(stderr, "rule %u, dtype %u: %s: byte %td of %llu differs\n", params_.rule,
                     params_.dtype, what, at - got[0].begin(),
                     static_cast<unsigned long long>(bytes));
        REQUIRE(at == got[0].end());
    }
    void same_values() const {
        same("values", params_.length * dtrain_dtype_size(params_.dtype),
             [&](dtrain_table_t *table, void *to) {
                 return dtrain_table_pull(table, 0, params_.length, to, nullptr, nullptr);
             });
    }
    void same_state() const {
        const char *name = nullptr;
        uint32_t dtype = 0;
        uint64_t count = 0;
        for (uint32_t i = 0;
             dtrain_table_describe_state(tables_[0], i, &name, &dtype, &count) == DTRAIN_OK; i++)
            same(name, count * dtrain_dtype_size(dtype), [&](dtrain_table_t *table, void *to) {
                return dtrain_table_pull_state(table, i, 0, count, to, nullptr, nullptr);
            });
    }

  private:
    const dtrain_table_params_t params_;
    dtrain_table_t *tables_[2] = {};
};

} // namespace gpu
