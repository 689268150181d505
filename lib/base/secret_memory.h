// Memory for keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <new>

namespace dtrain {

// Pieces of pages that are left out of core dumps, not swapped out (where the limit on locked
// memory allows it), and empty in forked children. A piece is wiped when it is returned, and its
// pages are kept for the next one. Thread-safe.
void *take_secret_memory(size_t length);                  // nullptr: no memory
void give_back_secret_memory(void *piece, size_t length); // length: as it was taken

// Base of the types that hold keys: their objects lie in secret memory. At most 4 KiB.
template <class T> struct InSecretMemory {
    static void *operator new(size_t length) {
        void *piece = take_secret_memory(length);
        if (piece == nullptr) throw std::bad_alloc();
        return piece;
    }
    static void operator delete(void *piece) { give_back_secret_memory(piece, sizeof(T)); }
};

} // namespace dtrain
