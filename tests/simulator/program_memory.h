// Memory of the programs that ranks run. It is always there, so that what fails is the library's.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "libc_memory.h"

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace dtrain::simulator {

template <class T> struct ProgramMemory {
    using value_type = T;
    ProgramMemory() = default;
    template <class U> ProgramMemory(const ProgramMemory<U> &) {}
    T *allocate(size_t count) {
        void *piece = __libc_malloc(count * sizeof(T));
        if (piece == nullptr) abort();
        return static_cast<T *>(piece);
    }
    void deallocate(T *piece, size_t) { __libc_free(piece); }
    bool operator==(const ProgramMemory &) const = default;
};

template <class T> using Data = std::vector<T, ProgramMemory<T>>;

} // namespace dtrain::simulator
