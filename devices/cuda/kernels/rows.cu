// The kernels that move rows of tables, or one memory to many, whatever their dtype.
// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"
#include "portable.h"

namespace dtrain::cuda {

// Moves in the largest unit T that divides the row and both addresses.
template <class T, bool gather> DT_FN void move_rows(const RowArguments &a) {
    const uint64_t units = a.row_bytes / sizeof(T), all = a.count * units;
    DT_ROLL
    for (uint64_t i = DT_FIRST; i < all; i += DT_STEP) {
        const uint64_t line = i / units, unit = i % units;
        const uint64_t row = at<const uint64_t>(a.rows, line);
        if (gather)
            at<T>(a.dst, i) = row < a.row_limit ? at<const T>(a.src, row * units + unit) : T(0);
        else if (row < a.row_limit)
            at<T>(a.dst, row * units + unit) = at<const T>(a.src, i);
    }
}
template <bool gather> DT_FN void move_rows(const RowArguments &a) {
    const uint64_t odd =
        a.row_bytes | reinterpret_cast<uintptr_t>(a.dst) | reinterpret_cast<uintptr_t>(a.src);
    if (odd % 8 == 0)
        move_rows<uint64_t, gather>(a);
    else if (odd % 4 == 0)
        move_rows<uint32_t, gather>(a);
    else
        move_rows<uint8_t, gather>(a);
}

struct alignas(16) Line {
    uint64_t words[2];
};
template <class T> DT_FN void spread(const SpreadArguments &a, uint64_t begin) {
    const uint64_t end = a.bytes / sizeof(T);
    DT_ROLL
    for (uint64_t i = begin + DT_FIRST; i < end; i += DT_STEP) {
        const T moved = at<const T>(a.src, i);
        DT_ROLL
        for (uint32_t k = 0; k < a.m; k++) at<T>(a.dsts[k], i) = moved;
    }
}
// Reads the source once.
DT_KERNEL(dtrain_rows_spread, SpreadArguments) {
    uint64_t odd = reinterpret_cast<uintptr_t>(a.src);
    DT_ROLL
    for (uint32_t k = 0; k < a.m; k++) odd |= reinterpret_cast<uintptr_t>(a.dsts[k]);
    if (odd % sizeof(Line) == 0) {
        spread<Line>(a, 0);
        spread<uint8_t>(a, a.bytes / sizeof(Line) * sizeof(Line));
    } else if (odd % 4 == 0) {
        spread<uint32_t>(a, 0);
        spread<uint8_t>(a, a.bytes / 4 * 4);
    } else {
        spread<uint8_t>(a, 0);
    }
}

DT_KERNEL(dtrain_rows_gather, RowArguments) { move_rows<true>(a); }
DT_KERNEL(dtrain_rows_scatter, RowArguments) { move_rows<false>(a); }

} // namespace dtrain::cuda
