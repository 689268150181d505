// A server's way to an accelerator: one queue, pinned memory for data on their way, and memory of
// the device that updates of all its tables use in turn.
// SPDX-License-Identifier: Apache-2.0
//
// What is submitted runs in order, so nothing waits here except for results, at most `patience`: an
// accelerator that takes longer counts as failed. Who holds a lock that others need asks look()
// first whether there would be such a wait. Data on their way wait for pinned memory only as long
// as an accelerator takes that gets on; then they, and what follows, go into a list, and on by
// go_on(). While a stream of the process waits for an operation, a thread makes the calls
// (accel::CallThread).
#pragma once
#include "accel/device_memory.h"
#include "base/clock.h"
#include "ps/storage/chores.h"
#include "ps/storage/delivery.h"
#include "ps/storage/device_health.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace dtrain::ps {

class DeviceRead;

// A table that work is for: its memory stays until that is done, and a failure is its own.
struct DeviceUser {
    std::shared_ptr<accel::DeviceMemory> memory;
    std::shared_ptr<DeviceHealth> health;
};

// All calls need the agent's lock, or that nobody else knows the stage.
class DeviceStage : public std::enable_shared_from_this<DeviceStage> {
  public:
    // The domain and chores (which may be nullptr) outlive it. NO_MEMORY: there is no memory to
    // pin.
    static Status open(accel::Domain &domain, Chores *chores, std::shared_ptr<DeviceStage> &out);
    ~DeviceStage();
    DeviceStage(const DeviceStage &) = delete;
    DeviceStage &operator=(const DeviceStage &) = delete;

    accel::Domain &domain() const { return domain_; }
    // Makes the memory for updates at least so large. Nothing may be submitted that uses it.
    Status reserve(uint64_t bytes);
    // Takes over another stage's memory for updates if it is larger.
    void take_scratch(DeviceStage &from);
    uint8_t *scratch() const { return static_cast<uint8_t *>(scratch_->device()); }

    // Copies to the device, before what is submitted later. `from` is free when it returns.
    Status put(const DeviceUser &user, void *to, const void *from, uint64_t bytes);
    // While it lives, put() waits for pinned memory as for results.
    class Patient {
      public:
        explicit Patient(DeviceStage &stage) : stage_(stage) { stage.room_ns_ = patience; }
        ~Patient() { stage_.room_ns_ = brief; }
        Patient(const Patient &) = delete;

      private:
        DeviceStage &stage_;
    };
    // Submits what put() has kept, and then what work(queue) submits. The work owns what it uses.
    using Work = std::function<Status(dtrain_dv_queue_t *queue)>;
    Status submit(const DeviceUser &user, Work work);
    Status flush();
    // Copies to the host what is there after all that was submitted, and waits for it. TIMEOUT, if
    // it need not be now: the accelerator does not get on.
    Status get(const DeviceUser &user, void *to, const void *from, uint64_t bytes, bool now);
    Status finish();     // flushes, and waits for all
    Status await_last(); // for what was submitted last, and its status
    // Submits what waits for pinned memory, as far as there is some. Threads that sleep are woken
    // when there may be more. Costs little if nothing waits.
    void go_on() {
        if (!waiting_.empty()) [[unlikely]]
            submit_waiting();
    }
    // Before memory of the device is freed: waits, at most so long, whatever has happened. Needs no
    // lock.
    void drain();
    // Frees memory of the device once nothing that was submitted uses it. Does not wait for that.
    void drop(std::shared_ptr<accel::DeviceMemory> memory);

    static constexpr uint64_t slot_bytes = 1 << 20, all_bytes = 4 * slot_bytes;
    static constexpr uint64_t any_work = UINT64_MAX; // for look(): also get() and finish()
    // Whether put() of so many bytes would find free memory; for more than all_bytes, whether the
    // device has just been seen to do all that was submitted, so that waits will be short. If not,
    // threads that sleep are woken when it may be so. only_asks: such work does not follow at once.
    // Fails as a wait does.
    Status look(uint64_t bytes, bool &ready, bool only_asks = false);

  private:
    static constexpr int64_t patience = 10 * second;
    static constexpr int64_t brief = 50 * ms; // so long may others wait for a lock

    friend class DeviceRead;
    using Posted = accel::OwnQueue::Posted;
    explicit DeviceStage(accel::Domain &domain, Chores *chores)
        : domain_(domain), chores_(chores), calls_(domain.ops()) {}
    struct Slot {
        std::unique_ptr<accel::PinnedBlock> block;
        Posted last;                // that uses it
        bool kept = false;          // a copy from it was not submitted yet
        DeviceRead *read = nullptr; // which gets what the batch has put into it
    };
    bool is_free(const Slot &slot) const { return !slot.kept && queue_.passed(slot.last); }
    Status take_slot(Slot *&out, int64_t patience_ns); // once it is free
    Status submit_read(const DeviceUser &user, Slot &slot, const uint8_t *from, uint64_t bytes,
                       bool wakes);
    void use(const DeviceUser &user, const std::shared_ptr<accel::DeviceMemory> &scratch);
    // wakes: threads that sleep, when it is done.
    Status submit_now(Work work, bool wakes);
    Status wait(const Posted &posted, int64_t patience_ns);
    Status wait_for(const Slot &slot, int64_t patience_ns); // until it is free
    void copy_by(Slot &slot, void *to, const void *from, uint64_t bytes);
    void submit_waiting();
    Status finish_waiting(int64_t patience_ns); // waits until all is submitted
    Status check(int64_t deadline_ns);          // what a wait that is not over does now and then
    static Status no_work(dtrain_dv_queue_t *) { return DTRAIN_OK; }

    accel::Domain &domain_;
    Chores *const chores_;
    std::shared_ptr<accel::DeviceMemory> scratch_;
    std::array<Slot, all_bytes / slot_bytes> slots_;
    size_t next_ = 0;
    std::vector<accel::Copy> copies_; // of put()
    std::vector<DeviceUser> users_;   // of what is submitted next
    struct Waiting {                  // data, or work
        DeviceUser user;
        std::shared_ptr<accel::DeviceMemory> scratch; // which it may use
        void *to;
        std::vector<char> bytes;
        Work work;
    };
    std::deque<Waiting> waiting_;               // for pinned memory, in order
    int64_t room_ns_ = brief;                   // how long put() waits for it
    std::unique_ptr<accel::PinnedBlock> words_; // of the queue
    accel::CallThread calls_;
    accel::OwnQueue queue_;
    Posted last_;
    int64_t checked_ns_ = 0; // by check()
    // A batch without work that shows how far the device has got, and wakes threads then.
    struct Probe {
        bool out = false;
        Posted posted;
        int64_t deadline_ns = 0;
        Status send(DeviceStage &stage); // unless it is out; fails as check()
    };
    Probe for_room_, probe_; // of look(); the latter for any work
    int64_t asked_ns_ = 0;   // for any work, the last time
};

// A copy to the host that nobody waits for. It keeps the stage, and the memory that it reads.
class DeviceRead final : public Delivery {
  public:
    struct Source {
        DeviceUser user;
        const uint8_t *from;
        uint64_t bytes; // at most DeviceStage::slot_bytes
    };
    using Take = std::function<void(const uint8_t *host)>; // gets them, once
    DeviceRead(std::shared_ptr<DeviceStage> stage, Source source, Take take);
    ~DeviceRead() override;
    State look() override;

  private:
    friend class DeviceStage;
    Status advance();
    void arrive();
    void fail(Status status); // they never come
    void let_go();            // of the slot

    const std::shared_ptr<DeviceStage> stage_;
    const Source source_;
    const Take take_;
    const int64_t deadline_ns_;
    State state_ = State::coming;
    DeviceStage::Slot *slot_ = nullptr; // while it is on its way
};

} // namespace dtrain::ps
