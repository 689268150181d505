// A dense and a sparse storage, driven through the interface that they share.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/request_values.h"
#include "ps/storage/sparse_shard.h"
#include "ps/storage/storage.h"

#include "check.h"
#include "complete.h"

#include <cstring>
#include <memory>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint64_t dim = 2, rows = 4, workers = 2;
constexpr uint64_t keys[rows] = {0, 1, 2, 3};

TableParams table(bool sparse, uint32_t consistency = DTRAIN_ASYNC) {
    TableParams params;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_MOMENTUM;
    params.learning_rate = 1;
    params.consistency = consistency;
    params.length = sparse ? 0 : dim * rows;
    params.dim = sparse ? dim : 0;
    if (sparse) params.placement.policy = DTRAIN_PLACE_HASH;
    return params;
}

struct Rig {
    explicit Rig(bool is_sparse, uint32_t consistency = DTRAIN_ASYNC)
        : params(table(is_sparse, consistency)), part(is_sparse ? Part() : Range{0, dim * rows}),
          storage(Storage::create(params, part, nullptr, workers)),
          all(is_sparse ? Items::rows(keys, rows, dim) : Items::range(0, dim * rows)) {}

    std::vector<float> values() {
        Storage::Pulled pulled;
        assert_int_equal(storage->pull(all, 0, {pulled.numbers, pulled.hold}), Reason::none);
        return read(pulled);
    }
    std::vector<float> state() {
        Storage::Pulled pulled;
        assert_int_equal(storage->pull_state(0, all, {pulled.numbers, pulled.hold}), Reason::none);
        return read(pulled);
    }
    std::vector<float> read(const Storage::Pulled &pulled) const {
        std::vector<float> out(all.elements());
        std::memcpy(out.data(), pulled.numbers, out.size() * sizeof out[0]);
        return out;
    }

    TableParams params;
    Part part;
    std::unique_ptr<Storage> storage;
    Items all;
};

const std::vector<float> ones(dim *rows, 1), minus_ones(dim *rows, -1), nothing(dim *rows, 0);

void both_push_and_pull(void **) {
    for (bool sparse : {false, true}) {
        Rig rig(sparse);
        assert_int_equal(rig.storage->sparse() != nullptr, sparse);
        assert_int_equal(rig.storage->copies_values(), sparse);
        assert_int_equal(rig.storage->push(rig.all, ones.data(), true, 0), Reason::none);
        assert_true(rig.values() == minus_ones);
        assert_true(rig.state() == ones);
        assert_int_equal(rig.storage->updates(), 1);
        assert_int_equal(rig.storage->set(rig.all, ones.data()), Reason::none);
        assert_int_equal(rig.storage->set_state(0, rig.all, nothing.data()), Reason::none);
        rig.storage->set_rate(2);
        assert_int_equal(rig.storage->push(rig.all, ones.data(), false, 0), Reason::none);
        assert_true(rig.values() == minus_ones);
        assert_int_equal(rig.storage->updates(), 1); // a later request of the same push
    }
}

void both_collect_and_apply(void **) {
    for (bool sparse : {false, true}) {
        Rig rig(sparse, DTRAIN_BSP);
        assert_int_equal(rig.storage->collect(0, rig.all, ones.data(), 1, 0), Reason::none);
        assert_int_equal(rig.storage->collect(0, rig.all, minus_ones.data(), 1, 1), Reason::none);
        assert_int_equal(rig.storage->collect(1, rig.all, ones.data(), 1, 1), Reason::none);
        rig.storage->set_rate(3, 1);
        assert_int_equal(rig.storage->apply({.clock = 0, .sums = {0}}), Reason::none);
        assert_true(rig.values() == nothing);
        assert_int_equal(rig.storage->apply({.clock = 1, .sums = {1}}), Reason::none);
        assert_true(rig.values() == std::vector<float>(dim * rows, -3));
        assert_int_equal(rig.storage->updates(), 2);
        assert_int_equal(rig.storage->collect(0, rig.all, ones.data(), 1, 0), Reason::none);
        rig.storage->drop(0);
        assert_int_equal(rig.storage->set_state(0, rig.all, nothing.data()), Reason::none);
        assert_int_equal(rig.storage->apply({.clock = 2, .sums = {0}}), Reason::none);
        assert_true(rig.values() == std::vector<float>(dim * rows, -3));
    }
}

void both_save_and_adopt_images(void **) {
    for (bool sparse : {false, true}) {
        Rig rig(sparse);
        assert_int_equal(rig.storage->push(rig.all, ones.data(), true, 0), Reason::none);
        std::unique_ptr<Image> image = complete(rig.storage->begin_image());
        assert_int_equal(image->updates, 1);
        assert_int_equal(image->as_rows() != nullptr, sparse);
        assert_int_equal(image->as_shard() != nullptr, !sparse);
        rig.storage->end(*image->copy);
        const GradualCopy::Target target = image->copy->targets()[0];
        rig.storage->keep(image);
        assert_null(image.get());
        image = rig.storage->begin_image(); // in the memory of the one before
        assert_ptr_equal(image->copy->targets()[0].memory.get(), target.memory.get());
        std::unique_ptr<Image> other = rig.storage->blank_image();
        assert_int_equal(other->as_rows() != nullptr, sparse);
        assert_int_equal(other->kept_bytes(50) == 50, !sparse);
    }
}

void bytes_are_charged_when_they_are_taken(void **) {
    for (bool sparse : {false, true}) {
        Rig rig(sparse);
        const uint64_t values_and_state = 2 * dim * rows * sizeof(float);
        const uint64_t needed = Storage::bytes_needed(rig.params, rig.part, workers);
        assert_int_equal(needed, sparse ? 0 : values_and_state);
        assert_int_equal(rig.storage->grows(), sparse);
        const TableParams bsp = table(sparse, DTRAIN_BSP);
        assert_int_equal(rig.storage->bytes_in_mode(bsp),
                         Storage::bytes_needed(bsp, rig.part, workers));
        const uint64_t before = rig.storage->bytes();
        if (!sparse) assert_int_equal(before, needed);
        rig.storage->set_room(0);
        const Reason reason = rig.storage->push(rig.all, ones.data(), true, 0);
        assert_int_equal(reason, sparse ? Reason::rows_limit : Reason::none);
        assert_int_equal(rig.storage->bytes(), before);
        assert_int_equal(rig.storage->limits()[0], before);
        assert_int_equal(rig.storage->limits()[1], 0);
        rig.storage->set_room(1 << 20);
        assert_int_equal(rig.storage->push(rig.all, ones.data(), true, 0), Reason::none);
        assert_int_equal(rig.storage->bytes() > before, sparse);
        rig.storage->set_mode(bsp);
        if (!sparse) assert_int_equal(rig.storage->bytes(), rig.storage->bytes_in_mode(bsp));
    }
}

void values_are_converted_where_the_wire_has_another_type(void **) {
    for (bool sparse : {false, true}) {
        TableParams params = table(sparse);
        params.dtype = DTRAIN_BF16; // computed in f32
        RequestValues values(params);
        struct {
            uint64_t keys[rows] = {0, 1, 2, 3};
            uint16_t numbers[dim * rows] = {0x3f80, 0x4000, 0xbf80, 0, 0x3f80, 0x4000, 0xbf80, 0};
        } sent;
        const float due[dim * rows] = {1, 2, -1, 0, 1, 2, -1, 0};
        RequestHeader h;
        h.kind = sparse ? RequestKind::push_rows : RequestKind::push;
        h.first = sparse ? 0 : 5;
        h.count = sparse ? rows : dim * rows;
        const void *payload = sparse ? static_cast<const void *>(&sent) : sent.numbers;
        const Items items = items_of(params, h, payload);
        assert_int_equal(items.elements(), dim * rows);
        assert_int_equal(items.at(3), sparse ? 1 : 8); // a key, or an element
        assert_memory_equal(values.computed(h, items, payload), due, sizeof due);
        params.dtype = DTRAIN_F32; // nothing to convert
        assert_ptr_equal(values.computed(h, items, payload), numbers_of(h, payload));
        assert_ptr_equal(numbers_of(h, payload), sent.numbers);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(both_push_and_pull),
        cmocka_unit_test(both_collect_and_apply),
        cmocka_unit_test(both_save_and_adopt_images),
        cmocka_unit_test(bytes_are_charged_when_they_are_taken),
        cmocka_unit_test(values_are_converted_where_the_wire_has_another_type),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
