// The kernels that move rows of tables, whatever their dtype.
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

DT_KERNEL(dtrain_rows_gather, RowArguments) { move_rows<true>(a); }
DT_KERNEL(dtrain_rows_scatter, RowArguments) { move_rows<false>(a); }

} // namespace dtrain::cuda
