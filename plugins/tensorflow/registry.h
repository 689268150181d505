// The communicators, gradient queues and tables that ops find by name. A program puts an object
// here before ops use it, and drops it before it destroys it. Ops keep the entry of a name, so the
// object may be replaced (an elastic job's next communicator), and an op whose object is gone
// fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace dtrain::tensorflow {

enum class Kind : uint32_t { none = 0, communicator = 1, gradients = 2, table = 3 };

struct Object {
    Kind kind = Kind::none;
    void *handle = nullptr;
    uint32_t dtype = 0;  // tables: DTRAIN_F32, ...
    uint64_t width = 0;  // sparse tables: elements of a row; 0: dense
    uint64_t serial = 0; // of all objects that were put, from 1
};

class Entry {
  public:
    explicit Entry(std::string name) : name_(std::move(name)) {}
    const std::string &name() const { return name_; }

    // Puts an object, or returns false while another one is there.
    bool put(const Object &object);
    // Takes the object away, or returns false while an op uses it.
    bool drop();
    // The object, which stays until leave(); of kind none if there is none.
    Object enter();
    void leave();

    // Memory for packed tensors, kept from call to call.
    struct Block {
        std::unique_ptr<std::byte[]> bytes;
        size_t size = 0;
    };
    Block take(size_t size);
    void give_back(Block block);

    // Of gradient queues: what all ranks have last agreed on for the name of a tensor, as a hash.
    // Equal on all ranks.
    bool agreed(const std::string &tensor, uint64_t hash);
    void agree(const std::string &tensor, uint64_t hash);

  private:
    const std::string name_;
    std::mutex lock_;
    Object object_;
    uint32_t users_ = 0;
    Block spare_;
    std::unordered_map<std::string, uint64_t> agreed_;
};

// The entry of a name, made at its first use and kept for the process's life.
Entry &entry_of(const std::string &name);

// Holds an entry's object for the time of one op.
class Use {
  public:
    explicit Use(Entry &entry) : entry_(entry), object_(entry.enter()) {}
    ~Use() {
        if (object_.kind != Kind::none) entry_.leave();
    }
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;
    const Object &operator*() const { return object_; }
    const Object *operator->() const { return &object_; }

  private:
    Entry &entry_;
    const Object object_;
};

} // namespace dtrain::tensorflow
