// Counts the pushes in flight for each kept key.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/kept_rows.h"

#include <cstring>

namespace dtrain::ps {

uint32_t *KeptRows::pushes_of(uint64_t key) const {
    uint32_t *pushes = nullptr;
    keys_.find(&key, 1, [&](size_t, char *row) { pushes = reinterpret_cast<uint32_t *>(row); });
    return pushes;
}

bool KeptRows::keeps(uint64_t key) const { return any() && pushes_of(key) != nullptr; }

bool KeptRows::keep(const RowStore &store, const uint64_t *keys, size_t count,
                    std::vector<uint64_t> &kept) {
    const size_t before = kept.size();
    kept.reserve(before + count);
    store.find(keys, count, [&](size_t i, const char *row) {
        if (row == nullptr) kept.push_back(keys[i]);
    });
    const uint64_t *its = kept.data() + before;
    std::vector<uint64_t> fresh;
    fresh.reserve(kept.size() - before);
    const size_t taken = keys_.obtain(
        its, kept.size() - before,
        [&](uint64_t key, char *row) {
            std::memset(row, 0, sizeof(uint32_t));
            fresh.push_back(key);
        },
        [](size_t, char *row) { ++*reinterpret_cast<uint32_t *>(row); });
    if (taken == kept.size() - before) {
        for (const uint64_t key : fresh) growth_.add(key);
        return true;
    }
    for (size_t i = 0; i < taken; i++) --*pushes_of(its[i]);
    for (const uint64_t key : fresh) keys_.erase(key);
    kept.resize(before);
    return false;
}

void KeptRows::end(const RowStore &store, const std::vector<uint64_t> &kept) {
    if (--under_way_ == 0) {
        keys_.clear();
        growth_ = {};
        return;
    }
    store.find(kept.data(), kept.size(), [&](size_t i, const char *row) {
        uint32_t *pushes = pushes_of(kept[i]);
        if (pushes == nullptr || --*pushes > 0) return;
        if (row == nullptr) growth_.remove(kept[i]);
        keys_.erase(kept[i]);
    });
}

void KeptRows::erased(uint64_t key) {
    if (!any()) return;
    keys_.obtain(
        &key, 1, [](uint64_t, char *row) { std::memset(row, 0, sizeof(uint32_t)); },
        [&](size_t, char *row) {
            ++*reinterpret_cast<uint32_t *>(row);
            growth_.add(key);
        });
}

void KeptRows::recount(const RowStore &store) {
    growth_ = {};
    keys_.for_each([&](uint64_t key, char *) {
        store.find(&key, 1, [&](size_t, const char *row) {
            if (row == nullptr) growth_.add(key);
        });
    });
}

} // namespace dtrain::ps
