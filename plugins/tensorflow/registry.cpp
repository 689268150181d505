// The registry, and the three functions by which programs fill it (dtrain.tensorflow calls them).
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/registry.h"
#include <atomic>
#include <dtrain.h>
#include <map>
#include <new>
#include <utility>

namespace dtrain::tensorflow {

bool Entry::put(const Object &object) {
    const std::lock_guard guard(lock_);
    if (object_.kind != Kind::none) return false;
    static std::atomic<uint64_t> count = 0;
    object_ = object;
    object_.serial = ++count;
    return true;
}

bool Entry::drop() {
    const std::lock_guard guard(lock_);
    if (users_ > 0) return false;
    object_ = {};
    spare_ = {};
    agreed_.clear();
    return true;
}

Object Entry::enter() {
    const std::lock_guard guard(lock_);
    if (object_.kind != Kind::none) users_++;
    return object_;
}

void Entry::leave() {
    const std::lock_guard guard(lock_);
    users_--;
}

Entry::Block Entry::take(size_t size) {
    {
        const std::lock_guard guard(lock_);
        if (spare_.size >= size) return std::exchange(spare_, {});
    }
    return {std::make_unique_for_overwrite<std::byte[]>(size), size};
}

void Entry::give_back(Block block) {
    const std::lock_guard guard(lock_);
    if (block.size > spare_.size) spare_ = std::move(block);
}

bool Entry::agreed(const std::string &tensor, uint64_t hash) {
    const std::lock_guard guard(lock_);
    const auto found = agreed_.find(tensor);
    return found != agreed_.end() && found->second == hash;
}

void Entry::agree(const std::string &tensor, uint64_t hash) {
    constexpr size_t most = 1 << 20; // names; a program that makes more of them compares each time
    const std::lock_guard guard(lock_);
    if (agreed_.size() < most || agreed_.contains(tensor)) agreed_[tensor] = hash;
}

Entry &entry_of(const std::string &name) {
    static std::mutex lock;
    static auto *const entries =
        new std::map<std::string, std::unique_ptr<Entry>>; // outlives all ops
    const std::lock_guard guard(lock);
    std::unique_ptr<Entry> &entry = (*entries)[name];
    if (entry == nullptr) entry = std::make_unique<Entry>(name);
    return *entry;
}

} // namespace dtrain::tensorflow

using dtrain::tensorflow::entry_of;
using dtrain::tensorflow::Kind;

// Makes an object known to ops under this name. DTRAIN_ERR_BUSY: the name is in use.
extern "C" DTRAIN_API int32_t dtrain_tensorflow_put(const char *name, uint32_t kind, void *handle,
                                                    uint32_t dtype, uint64_t width) {
    try {
        if (name == nullptr || handle == nullptr || kind < 1 || kind > 3) return DTRAIN_ERR_INVALID;
        return entry_of(name).put({static_cast<Kind>(kind), handle, dtype, width, 0})
                   ? DTRAIN_OK
                   : DTRAIN_ERR_BUSY;
    } catch (const std::bad_alloc &) {
        return DTRAIN_ERR_NO_MEMORY;
    }
}

// Forgets the object of this name. DTRAIN_ERR_BUSY: an op is using it.
extern "C" DTRAIN_API int32_t dtrain_tensorflow_drop(const char *name) {
    try {
        if (name == nullptr) return DTRAIN_ERR_INVALID;
        return entry_of(name).drop() ? DTRAIN_OK : DTRAIN_ERR_BUSY;
    } catch (const std::bad_alloc &) {
        return DTRAIN_ERR_NO_MEMORY;
    }
}
