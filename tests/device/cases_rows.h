// Rows of tables: gathered and scattered by number.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_work.h"
#include "rig.h"

namespace dtrain::test {

// Widths that allow 8, 4 and 1 byte at a time; every third number is beyond the table.
inline void rows_are_moved(void **) {
    Rig rig;
    rig.ok(ops().prepare(rig.dev, 0));
    constexpr uint64_t limit = 50, count = 40;
    for (const uint64_t width : {uint64_t{8}, uint64_t{12}, uint64_t{5}, uint64_t{256}}) {
        std::vector<uint64_t> numbers;
        for (uint64_t i = 0; i < count; i++) numbers.push_back(i * 7 % limit);
        for (uint64_t i = 0; i < count; i += 3) numbers[i] = i % 2 ? limit : UINT64_MAX;
        const Bytes rows = random_bytes(limit * width), lines = random_bytes(count * width);
        OnDevice table(rig, rows.size()), packed(rig, lines.size());
        OnDevice indices(rig, count * 8);
        table.write(rows.data());
        indices.write(numbers.data());
        dtrain_dv_work_t work = work_of(DTRAIN_DV_GATHER, 0, count);
        work.rows = reinterpret_cast<const uint64_t *>(indices.address);
        work.row_bytes = width;
        work.row_limit = limit;
        void *dst = packed.address;
        const void *src = table.address;
        work.dsts = &dst;
        work.srcs = &src;
        rig.ok(ops().run(rig.queue, &work));
        Bytes expected(count * width);
        for (uint64_t i = 0; i < count; i++)
            if (numbers[i] < limit) memcpy(&expected[i * width], &rows[numbers[i] * width], width);
        assert_true(packed.read() == expected);

        packed.write(lines.data());
        work.kind = DTRAIN_DV_SCATTER;
        dst = table.address;
        src = packed.address;
        rig.ok(ops().run(rig.queue, &work));
        expected = rows;
        for (uint64_t i = 0; i < count; i++)
            if (numbers[i] < limit) memcpy(&expected[numbers[i] * width], &lines[i * width], width);
        assert_true(table.read() == expected);
    }
}

inline constexpr CMUnitTest row_cases[] = {cmocka_unit_test(rows_are_moved)};

} // namespace dtrain::test
