// The kernels of every instruction set this processor has compute the same, bit for bit: one by
// one, and as rules over many steps.
// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"
#include "ps/optimizer/update_rule.h"
#include "ps/table/rules.h"

#include "check.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint64_t seed = 20250311;

struct Named {
    const char *name;
    const Kernels *kernels;
};

std::vector<Named> all_kernels() {
    std::vector<Named> all = {{"adjust", &adjust_kernels}, {"proximal", &proximal_kernels}};
    for (uint32_t rule : builtin_rules()) {
        const RuleInfo &info = rule_info(rule);
        for (const Kernels *kernels : {info.update, info.direction})
            if (kernels != nullptr) all.push_back({info.name, kernels});
    }
    return all;
}

// Zeros, subnormals, the greatest, and numbers of all magnitudes between.
template <class T> T random_value(std::mt19937_64 &random) {
    std::uniform_real_distribution<double> unit(-1, 1);
    switch (random() % 12) {
    case 0: return 0;
    case 1: return static_cast<T>(unit(random)) * std::numeric_limits<T>::min();
    case 2: return static_cast<T>(unit(random)) * std::numeric_limits<T>::max();
    case 3: return static_cast<T>(unit(random) * 1e-6);
    case 4: return static_cast<T>(unit(random) * 1e6);
    default: return static_cast<T>(unit(random));
    }
}

Step random_step(std::mt19937_64 &random) {
    std::uniform_real_distribution<double> unit(0.01, 0.99);
    Step s;
    for (double *field : {&s.rate, &s.momentum, &s.beta1, &s.beta2, &s.rho, &s.epsilon, &s.decay,
                          &s.own_decay, &s.l1, &s.l2, &s.clip, &s.ftrl_beta, &s.compensation,
                          &s.trust, &s.share, &s.scale, &s.ratio})
        *field = unit(random);
    s.first = 1 / unit(random);
    s.second = 1 / unit(random);
    return s;
}

template <class T> struct Arrays {
    std::vector<T> w, g, a, b, c;
    Arrays(std::mt19937_64 &random, uint64_t count) {
        for (std::vector<T> *array : {&w, &g, &a, &b, &c})
            for (uint64_t i = 0; i < count; i++) array->push_back(random_value<T>(random));
        for (std::vector<T> *array : {&a, &b}) // of some rules sums of squares
            for (T &x : *array) x = x < 0 ? -x : x;
    }
    void run(Kernel<T> kernel, const Step &step) {
        kernel(step, w.data(), g.data(), a.data(), b.data(), c.data(), w.size());
    }
};

// NaNs count as equal: which one an operation yields depends on the order of its operands.
template <class T> uint64_t differences(const std::vector<T> &x, const std::vector<T> &y) {
    uint64_t count = 0;
    for (size_t i = 0; i < x.size(); i++)
        count += std::memcmp(&x[i], &y[i], sizeof(T)) != 0 && !(x[i] != x[i] && y[i] != y[i]);
    return count;
}

template <class T> uint64_t differences(const Arrays<T> &x, const Arrays<T> &y) {
    return differences(x.w, y.w) + differences(x.a, y.a) + differences(x.b, y.b) +
           differences(x.c, y.c);
}

template <class T> void one_by_one_as(const char *type) {
    const InstructionSet &best = *supported_set(0);
    std::mt19937_64 random(seed);
    for (const Named &named : all_kernels())
        for (uint64_t count : {0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000, 4099})
            for (int round = 0; round < 4; round++) {
                const Arrays<T> before(random, count);
                const Step step = random_step(random);
                Arrays<T> wanted = before;
                wanted.run(named.kernels->of<T>(best), step);
                const InstructionSet *other;
                for (uint32_t rank = 1; (other = supported_set(rank)) != nullptr; rank++) {
                    Arrays<T> got = before;
                    got.run(named.kernels->of<T>(*other), step);
                    if (uint64_t n = differences(got, wanted); n > 0)
                        fail_msg("%s of %s, %lu elements: %lu numbers differ between %s and %s",
                                 named.name, type, count, n, best.name, other->name);
                }
            }
}

void one_by_one(void **) {
    one_by_one_as<float>("f32");
    one_by_one_as<double>("f64");
}

// A table's values and state after many updates, with everything that changes an optimizer.
std::vector<double> trained(uint32_t rule, uint32_t dtype, const InstructionSet &set) {
    constexpr uint64_t count = 1003;
    TableParams params;
    params.length = params.row_length = count;
    params.rule = rule;
    params.dtype = dtype;
    params.momentum = 0.9;
    params.beta1 = 0.9;
    params.beta2 = 0.999;
    params.rho = 0.9;
    params.trust = 0.001;
    params.compensation = 0.5;
    params.ftrl_beta = 1;
    params.learning_rate = 0.01;
    params.epsilon = 1e-8;
    params.clip_value = 0.9;
    params.clip_norm = 10;
    params.weight_decay = 0.01;
    params.l1 = 0.001;
    params.l2 = 0.002;
    const UpdateRule update(params, set);
    std::mt19937_64 random(seed + rule);
    std::uniform_real_distribution<double> unit(-1, 1);
    std::vector<double> values(count), g(count), slots[max_slots];
    RuleTarget target;
    target.values = values.data();
    for (uint32_t i = 0; i < max_slots; i++) {
        slots[i].resize(count);
        target.slots[i] = slots[i].data();
    }
    auto put = [&](std::vector<double> &to) {
        for (uint64_t i = 0; i < count; i++) {
            const float x = float(unit(random));
            if (dtype == DTRAIN_F64)
                to[i] = unit(random);
            else
                std::memcpy(reinterpret_cast<char *>(to.data()) + 4 * i, &x, 4);
        }
    };
    put(values);
    for (uint64_t step = 1; step <= 100; step++) {
        put(g);
        update.apply(step, target, g.data(), count);
    }
    for (const auto &slot : slots) values.insert(values.end(), slot.begin(), slot.end());
    return values;
}

void over_many_steps(void **) {
    for (uint32_t rule : builtin_rules())
        for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64}) {
            if (rule_info(rule).update == nullptr) continue;
            const std::vector<double> best = trained(rule, dtype, *supported_set(0));
            const InstructionSet *other;
            for (uint32_t rank = 1; (other = supported_set(rank)) != nullptr; rank++)
                if (trained(rule, dtype, *other) != best)
                    fail_msg("%s of %s: %s differs from %s", rule_info(rule).name,
                             dtrain::device::dtype_name(dtype), other->name,
                             supported_set(0)->name);
        }
}

// Bits computed once and kept: the same with every compiler, library and kind of processor.
uint64_t hash_of(const std::vector<double> &values) {
    uint64_t hash = 14695981039346656037u; // FNV-1a
    for (double value : values)
        for (uint64_t bits = std::bit_cast<uint64_t>(value), i = 0; i < 8; i++, bits >>= 8)
            hash = (hash ^ (bits & 0xff)) * 1099511628211u;
    return hash;
}

void as_ever(void **) {
    const uint64_t hash = hash_of(trained(DTRAIN_RULE_ADAM, DTRAIN_F32, *supported_set(0)));
    if (hash != 0x4062a206e933f6e0) fail_msg("the hash of Adam's bits is %#lx", hash);
}

} // namespace

int main() {
    std::printf("seed %lu, targets", seed);
    const InstructionSet *set;
    for (uint32_t rank = 0; (set = supported_set(rank)) != nullptr; rank++)
        std::printf(" %s", set->name);
    std::printf("\n");
    const CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(over_many_steps),
        cmocka_unit_test(as_ever),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
