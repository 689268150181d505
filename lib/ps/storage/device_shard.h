// A server's part of one dense table whose values and rule's state lie on an accelerator.
// SPDX-License-Identifier: Apache-2.0
//
// Pushes go to the device, whose kernels apply them; they count as accepted once they are given to
// its queue, since all that follows there sees them. Sums of open clocks are made in host
// memory, so that the device gets one update for each clock. Results are the bits of Shard. Pulled
// values come later than the answer is made (Delivery). After a failure of the accelerator every
// request that needs the values gets Reason::device, until a checkpoint is restored.
#pragma once
#include "ps/optimizer/step_counts.h"
#include "ps/placement/partition.h"
#include "ps/storage/aggregate.h"
#include "ps/storage/answer_buffers.h"
#include "ps/storage/clock_sums.h"
#include "ps/storage/copies.h"
#include "ps/storage/device_stage.h"
#include "ps/storage/shard_image.h"
#include "ps/storage/storage.h"
#include "ps/table/rules.h"

#include "base/log.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

// The bytes of an array among others in memory of an accelerator.
constexpr uint64_t for_device(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// Where tables on accelerators go, and who is told of their failures.
struct DevicePlace {
    std::shared_ptr<DeviceStage> stage;
    Log *log = nullptr;
};

class DeviceShard final : public Storage {
  public:
    // Bytes of host memory: the sums.
    static uint64_t bytes_needed(const TableParams &params, uint64_t count, uint32_t workers);
    // Waits until the accelerator has made it. UNSUPPORTED: it lacks a kernel; NO_MEMORY: it is
    // full.
    static Status create(const DevicePlace &place, const std::string &name,
                         const TableParams &params, const Part &part, uint32_t workers,
                         std::unique_ptr<DeviceShard> &out);
    // From now on it is used with this stage, which several tables share.
    void move_to(std::shared_ptr<DeviceStage> stage);

    ~DeviceShard() override;
    Reason push(const Items &items, const void *g, bool begins, uint32_t worker) override;
    Reason collect(uint32_t sum, const Items &items, const void *g, double weight,
                   uint32_t worker) override;
    Reason apply(const ClockUpdate &update) override;
    void drop(uint32_t sum) override;
    Reason set(const Items &items, const void *values) override;
    void set_mode(const TableParams &params) override;
    Reason pull(const Items &items, uint32_t worker, const Into &out) override;
    Reason pull_state(uint64_t index, const Items &items, const Into &out) override;
    Reason set_state(uint64_t index, const Items &items, const void *numbers) override;
    bool copies_values() const override { return true; }
    bool copies_state(uint64_t) const override { return true; }
    uint64_t copy_bytes(uint64_t bytes) const override { return answers_.bytes_for(bytes); }

    uint64_t bytes() const override { return bytes_; }
    uint64_t device_bytes() const override { return memory_->bytes(); }
    uint64_t bytes_in_mode(const TableParams &params) const override {
        return bytes_needed(params, part_.count(), workers_);
    }
    std::array<uint64_t, 2> limits() const override { return {bytes_, 0}; }
    uint64_t lacking(uint64_t bytes) const override { return bytes; }
    std::unique_ptr<Image> begin_image() override;
    void end(GradualCopy &copy) override { copies_.end(copy); }
    uint64_t image_bytes() const override { return ShardImage::bytes_of(params_, part_.count()); }
    void keep(std::unique_ptr<Image> &image) override { exchange(image, kept_); }
    std::unique_ptr<Image> blank_image() const override {
        return std::make_unique<ShardImage>(params_, part_);
    }
    void adopt(Image &&image) override;
    const std::string *broken() const override {
        const std::string &why = health_->broken();
        return why.empty() ? nullptr : &why;
    }
    bool is_busy(Need need, bool only_asks) override;

  private:
    DeviceShard(const DevicePlace &place, const std::string &name, const TableParams &params,
                const Part &part, uint32_t workers);
    Status allocate();
    Status prepare();
    Status fill(size_t array, uint32_t dtype, uint64_t count, double value);
    Reason outcome(Status status) { return health_->outcome(status); }
    bool failed() const { return !health_->broken().empty(); }
    DeviceUser user() const { return {memory_, health_}; }
    Status put(void *to, const void *from, uint64_t bytes) {
        return stage_->put(user(), to, from, bytes);
    }
    // An answer that gets what `take` makes of memory of the device.
    void deliver(std::shared_ptr<Buffer> answer, const uint8_t *from, uint64_t bytes,
                 std::function<void(const uint8_t *host)> take, const Into &out);
    Range local(const Range &range) const { return {part_.place_of(range.first), range.count}; }
    uint8_t *values(uint64_t element) const { return arrays_[0] + element * stored_size_; }
    uint8_t *slot(size_t index) const { return arrays_[1 + index]; }
    Status write(const Range &local, const void *values);

    // Updates are gathered as long as their ranges adjoin, and made by few kernels.
    Status gather(const Range &local, const void *g);
    Status update_gathered();
    void before_change(const Range &local);
    // The kernels of an update (device_update.cpp), with all that they are given.
    struct Launch;
    using Launches = std::vector<Launch>;
    struct Rows; // what they work on
    Status submit(Launches &&launches);
    void update(const Range &whole, Launches &out);
    // whole: the range of the gradients, of which part is updated as one.
    void update_part(const Range &whole, const Range &part, uint64_t step, Launches &out);
    void add_rule(const UpdatePlan &plan, const Rows &rows, Launches &out) const;
    void convert(const Range &whole, bool opens, Launches &out);
    uint64_t scratch_bytes() const; // gradients, wide values, norms
    uint8_t *wide_values() const;

    std::shared_ptr<DeviceStage> stage_;
    const std::shared_ptr<DeviceHealth> health_;
    const RuleInfo &info_;
    const Part part_;
    const uint32_t workers_;
    uint64_t bytes_;
    const uint64_t size_, stored_size_; // bytes of an element: pushed, stored
    const bool narrow_;                 // values are widened for updates
    const std::vector<StateArray> state_;
    const bool by_row_;
    const uint64_t counted_;  // elements that share a count of updates; 0: no counts
    const uint64_t capacity_; // elements of an update: whole rows
    StepCounts steps_;
    std::shared_ptr<accel::DeviceMemory> memory_;
    std::vector<uint8_t *> arrays_; // in it: values, state_
    Range gathered_;                // whose gradients are on the device
    std::vector<Aggregate> sums_;
    ClockSums added_;
    AnswerBuffers answers_;
    std::vector<char> stored_; // scratch
    std::unique_ptr<ShardImage> kept_;
    Copies<ArrayCopy> copies_; // with the arrays
};

} // namespace dtrain::ps
