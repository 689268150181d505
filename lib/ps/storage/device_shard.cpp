// Allocates, reads and writes a shard on an accelerator, and collects pushes for it.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/device_shard.h"

#include "device/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr uint64_t gathered_elements = 1 << 18; // of an update, more only for a longer row

// Whole rows, if updates are of rows; no less than a push has.
uint64_t capacity_of(const TableParams &params) {
    const uint64_t row = by_whole_rows(params) ? params.row_length : 1;
    return std::max<uint64_t>(gathered_elements / row, 1) * row;
}
static_assert(gathered_elements >= chunk_bytes);

} // namespace

uint64_t DeviceShard::bytes_needed(const TableParams &params, uint64_t count, uint32_t workers) {
    const uint64_t sums = !collects(params) ? 0 : collects_apart(params) ? workers : open_clocks;
    return sums * Aggregate::bytes_needed(ClockSums::element_bytes_of(params), count);
}

DeviceShard::DeviceShard(const DevicePlace &place, const std::string &name,
                         const TableParams &params, const Part &part, uint32_t workers)
    : Storage(params, nullptr), stage_(place.stage),
      health_(std::make_shared<DeviceHealth>(name, place.stage->domain().name())),
      info_(rule_info(params.rule)), part_(part), workers_(workers), bytes_(bytes_in_mode(params)),
      size_(device::dtype_size(computed_dtype(params))),
      stored_size_(device::dtype_size(storage_dtype_of(params))), narrow_(is_stored_narrow(params)),
      state_(slots_of(params)), by_row_(by_whole_rows(params)),
      counted_(counts_steps(params) ? counted_elements(params) : 0), capacity_(capacity_of(params)),
      steps_(part.count() / counted_elements(params)), added_(params), answers_(chunk_bytes) {}

Status DeviceShard::create(const DevicePlace &place, const std::string &name,
                           const TableParams &params, const Part &part, uint32_t workers,
                           std::unique_ptr<DeviceShard> &out) {
    std::unique_ptr<DeviceShard> made(new DeviceShard(place, name, params, part, workers));
    const DeviceStage::Patient waits(*place.stage);
    Status s = made->allocate();
    if (s == DTRAIN_OK) s = made->prepare();
    if (s == DTRAIN_OK) s = place.stage->finish();
    if (s != DTRAIN_OK) return s;
    if (made->failed()) return fail(DTRAIN_ERR_DEVICE, "%s", made->health_->broken().c_str());
    made->health_->set_log(place.log);
    out = std::move(made);
    return DTRAIN_OK;
}

Status DeviceShard::allocate() {
    std::vector<uint64_t> sizes = {part_.count() * stored_size_};
    for (const StateArray &array : state_) sizes.push_back(array.bytes_of(part_.count()));
    uint64_t all = 1; // never 0
    for (uint64_t &bytes : sizes) all += for_device(bytes);
    if (Status s = stage_->reserve(scratch_bytes()); s != DTRAIN_OK) return s;
    if (Status s = accel::DeviceMemory::allocate(stage_->domain(), all, false, memory_);
        s != DTRAIN_OK)
        return s;
    auto *at = static_cast<uint8_t *>(memory_->device());
    for (const uint64_t bytes : sizes) {
        arrays_.push_back(at);
        at += for_device(bytes);
    }
    Status s = stage_->submit(
        user(), [&ops = stage_->domain().ops(), first = arrays_[0], all](dtrain_dv_queue_t *queue) {
            return ops.fill(queue, first, 0, all - 1);
        });
    if (s == DTRAIN_OK && params_.initial != 0)
        s = fill(0, computed_dtype(params_), part_.count(), params_.initial);
    for (size_t i = 0; i < state_.size() && s == DTRAIN_OK; i++)
        if (state_[i].initial != 0)
            s = fill(1 + i, state_[i].dtype, state_[i].numbers_of(part_.count()),
                     state_[i].initial);
    return s;
}

Status DeviceShard::fill(size_t array, uint32_t dtype, uint64_t count, double value) {
    const uint64_t size = device::dtype_size(dtype), most = std::min(count, gathered_elements);
    std::vector<char> same(most * size);
    if (most > 0) ps::fill(dtype, same.data(), most, value);
    for (uint64_t at = 0; at < count; at += most) {
        const uint64_t n = std::min(most, count - at);
        const Status s = array == 0 ? write({at, n}, same.data())
                                    : put(arrays_[array] + at * size, same.data(), n * size);
        if (s != DTRAIN_OK) return s;
    }
    return DTRAIN_OK;
}

DeviceShard::~DeviceShard() {
    if (memory_ != nullptr) stage_->drop(std::move(memory_));
}

void DeviceShard::move_to(std::shared_ptr<DeviceStage> stage) {
    stage->take_scratch(*stage_);
    stage_ = std::move(stage);
}

// A clock's update, and one while a save copies what it changes, take up memory for data on their
// way again and again.
bool DeviceShard::is_busy(Need need, bool only_asks) {
    if (failed() && need != Need::whole) return false;
    const bool once = need == Need::change && !copies_.any();
    const uint64_t bytes = once ? 2 * chunk_bytes : DeviceStage::any_work; // 2: it may be widened
    bool ready = true;
    const Status s = stage_->look(bytes, ready, only_asks);
    if (s != DTRAIN_OK) (void)outcome(s);
    return s == DTRAIN_OK && !ready;
}

// ---- pushes ----

Status DeviceShard::gather(const Range &local, const void *g) {
    const bool adjoins = gathered_.count > 0 && local.first == gathered_.end() &&
                         gathered_.count + local.count <= capacity_;
    if (!adjoins) {
        if (Status s = update_gathered(); s != DTRAIN_OK) return s;
        gathered_ = {local.first, 0};
    }
    const Status s = put(stage_->scratch() + gathered_.count * size_, g, local.count * size_);
    gathered_.count += local.count;
    return s;
}

Reason DeviceShard::push(const Items &items, const void *g, bool begins, uint32_t /*worker*/) {
    if (failed()) return Reason::device;
    if (numbered_) begin_update(updates_ + begins);
    Status s = DTRAIN_OK;
    if (params_.rule == DTRAIN_RULE_ASSIGN && segments_ == nullptr) {
        before_change(local(items.range()));
        s = write(local(items.range()), g);
        if (s == DTRAIN_OK) s = stage_->flush();
    } else {
        s = gather(local(items.range()), g);
        if (s == DTRAIN_OK) s = update_gathered();
    }
    if (s != DTRAIN_OK) gathered_ = {};
    updates_ += begins && s == DTRAIN_OK;
    return outcome(s);
}

Reason DeviceShard::collect(uint32_t sum, const Items &items, const void *g, double weight,
                            uint32_t /*worker*/) {
    if (failed()) return Reason::device;
    if (sum >= sums_.size()) sums_.resize(sum + 1);
    Aggregate &sums = sums_[sum];
    if (!sums.allocated() && !sums.allocate(added_.element_bytes(), part_.count()))
        return Reason::no_memory;
    const Range range = local(items.range());
    sums.merge(
        range, added_.of(g, range.count, weight),
        [&](const Range &part, void *to, const char *from) { added_.add(to, from, part.count); });
    sums.mark(range);
    return Reason::none;
}

Reason DeviceShard::apply(const ClockUpdate &made_of) {
    begin_clock(made_of.clock);
    Aggregate *total = nullptr;
    for (const uint32_t sum : made_of.sums) {
        if (sum >= sums_.size() || !sums_[sum].allocated()) continue;
        if (total == nullptr) {
            total = &sums_[sum];
            continue;
        }
        sums_[sum].take([&](const Range &block, void *g) {
            total->merge(block, g, [&](const Range &part, void *to, const char *from) {
                added_.add(to, from, part.count);
            });
            total->mark(block);
        });
    }
    if (total == nullptr) return Reason::none;
    Status s = !failed() ? DTRAIN_OK : DTRAIN_ERR_DEVICE;
    const bool assigns = params_.rule == DTRAIN_RULE_ASSIGN && segments_ == nullptr;
    auto update_block = [&](const Range &block, void *g) {
        if (s != DTRAIN_OK) return;
        added_.finish(g, block.count, made_of.divisor);
        if (assigns) before_change(block);
        s = assigns ? write(block, g) : gather(block, g);
    };
    if (by_row_)
        total->take_rows(params_.row_length, update_block);
    else
        total->take(update_block, capacity_);
    if (failed()) return Reason::device;
    if (s == DTRAIN_OK) s = update_gathered();
    if (s == DTRAIN_OK) s = stage_->flush();
    if (s != DTRAIN_OK) gathered_ = {};
    return outcome(s);
}

void DeviceShard::drop(uint32_t sum) {
    if (sum < sums_.size() && sums_[sum].allocated()) sums_[sum].take([](const Range &, void *) {});
}

void DeviceShard::set_mode(const TableParams &params) {
    take_mode(mode_bits(params), params_);
    sums_.clear();
    bytes_ = bytes_in_mode(params_);
}

// ---- values and state ----

// Stores values of the computed type, rounded to nearest.
Status DeviceShard::write(const Range &local, const void *from) {
    if (!narrow_) return put(values(local.first), from, local.count * size_);
    stored_.resize(local.count * stored_size_);
    write_row(stored_.data(), storage_dtype_of(params_), static_cast<const float *>(from),
              local.count);
    return put(values(local.first), stored_.data(), stored_.size());
}

Reason DeviceShard::set(const Items &items, const void *from) {
    if (failed()) return Reason::device;
    const Range range = local(items.range());
    before_change(range);
    Status s = write(range, from);
    if (s == DTRAIN_OK) s = stage_->flush();
    return outcome(s);
}

void DeviceShard::deliver(std::shared_ptr<Buffer> answer, const uint8_t *from, uint64_t bytes,
                          std::function<void(const uint8_t *host)> take, const Into &out) {
    out.numbers = answer->at(0);
    out.hold = std::move(answer);
    *out.delivery = std::make_shared<DeviceRead>(stage_, DeviceRead::Source{user(), from, bytes},
                                                 std::move(take));
    (*out.delivery)->look(); // submits it
}

Reason DeviceShard::pull(const Items &items, uint32_t /*worker*/, const Into &out) {
    if (failed()) return Reason::device;
    const Range range = local(items.range());
    const uint32_t stored = storage_dtype_of(params_), wire = wire_dtype_of(params_);
    const uint64_t bytes = range.count * stored_size_;
    std::shared_ptr<Buffer> answer =
        answers_.take(wire == stored ? bytes : row_bytes(wire, range.count));
    if (answer == nullptr) return Reason::no_memory;
    deliver(
        answer, values(range.first), bytes,
        [=, count = range.count](const uint8_t *host) {
            if (wire == stored)
                std::memcpy(answer->at(0), host, bytes);
            else
                convert_row(answer->at(0), wire, host, stored, count);
        },
        out);
    return Reason::none;
}

Reason DeviceShard::pull_state(uint64_t index, const Items &items, const Into &out) {
    StateArray array;
    if (!find_state(params_, index, array)) return Reason::unknown_state;
    const Range range = local(items.range());
    const Range its = {range.first / array.elements, range.count / array.elements};
    const uint64_t size = array.numbers * array.size, bytes = its.count * size;
    if (!array.steps && failed()) return Reason::device;
    std::shared_ptr<Buffer> answer = answers_.take(bytes);
    if (answer == nullptr) return Reason::no_memory;
    if (!array.steps) {
        deliver(
            answer, slot(index) + its.first * size, bytes,
            [=](const uint8_t *host) { std::memcpy(answer->at(0), host, bytes); }, out);
        return Reason::none;
    }
    steps_.read(its, reinterpret_cast<uint64_t *>(answer->at(0)));
    out.numbers = answer->at(0);
    out.hold = std::move(answer);
    return Reason::none;
}

Reason DeviceShard::set_state(uint64_t index, const Items &items, const void *numbers) {
    StateArray array;
    if (!find_state(params_, index, array)) return Reason::unknown_state;
    const Range range = local(items.range());
    const Range its = {range.first / array.elements, range.count / array.elements};
    if (array.steps) return write_steps(steps_, its, numbers);
    if (failed()) return Reason::device;
    before_change(range);
    const uint64_t size = array.numbers * array.size;
    Status s = put(slot(index) + its.first * size, numbers, its.count * size);
    if (s == DTRAIN_OK) s = stage_->flush();
    return outcome(s);
}

// ---- images ----

std::unique_ptr<Image> DeviceShard::begin_image() {
    auto image = std::make_unique<ShardImage>(params_, part_);
    if (kept_ != nullptr)
        image->reuse(std::move(*std::exchange(kept_, nullptr)));
    else if (!image->allocate(Buffer::Pages::small))
        return nullptr;
    const uint64_t count = part_.count();
    std::vector<ArrayCopy::Array> arrays = {{nullptr, image->values.memory, count * stored_size_}};
    for (size_t i = 0; i < state_.size(); ++i)
        arrays.push_back({nullptr, image->slots[i], state_[i].bytes_of(count)});
    using Result = ArrayCopy::Remote::Result;
    auto read = [this](size_t array, uint64_t at, uint64_t bytes, void *to, bool now) {
        if (failed()) return set_error_text(health_->broken().c_str()), Result::failed;
        const Status s = stage_->get(user(), to, arrays_[array] + at, bytes, now);
        if (s == DTRAIN_ERR_TIMEOUT && !now) return Result::later;
        return outcome(s) == Reason::none ? Result::done : Result::failed;
    };
    const std::shared_ptr<ArrayCopy> copy =
        ArrayCopy::begin(std::move(arrays), {read, [this] { return is_busy(Need::whole, false); }});
    if (copy == nullptr) return nullptr;
    image->copy = copy;
    image->steps = steps_;
    copies_.add(copy);
    image->updates = updates_;
    image->rate = rate_.set_to();
    return image;
}

void DeviceShard::before_change(const Range &local) {
    if (!copies_.any()) return;
    copies_.for_each([&](ArrayCopy &copy) {
        copy.before_change(0, local.first * stored_size_, local.count * stored_size_);
        for (size_t i = 0; i < state_.size(); i++) {
            const uint64_t bytes = state_[i].numbers * state_[i].size;
            const uint64_t first = local.first / state_[i].elements;
            const uint64_t end = (local.end() + state_[i].elements - 1) / state_[i].elements;
            copy.before_change(1 + i, first * bytes, (end - first) * bytes);
        }
    });
}

void DeviceShard::adopt(Image &&from) {
    auto &image = static_cast<ShardImage &>(from);
    copies_.for_each([](ArrayCopy &copy) { copy.advance(GradualCopy::rest); }); // while it is there
    const uint64_t count = part_.count();
    health_->renew();
    const DeviceStage::Patient waits(*stage_);
    bool ready = true;
    Status s = stage_->look(DeviceStage::any_work, ready); // who has failed is not waited for
    if (s == DTRAIN_OK) s = put(arrays_[0], image.values.at(0), count * stored_size_);
    for (size_t i = 0; i < state_.size() && s == DTRAIN_OK; i++)
        s = put(slot(i), image.slots[i]->at(0), state_[i].bytes_of(count));
    if (s == DTRAIN_OK) s = stage_->finish();
    steps_ = std::move(image.steps);
    updates_ = image.updates;
    set_rate(image.rate);
    (void)outcome(s);
}

} // namespace dtrain::ps
