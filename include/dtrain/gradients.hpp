// Gradient queues and compressed all-reduces.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_GRADIENTS_HPP
#define DTRAIN_GRADIENTS_HPP
#include "request.hpp"

namespace dtrain {
inline namespace cxx {

class GradientsParams {
  public:
    GradientsParams() noexcept { DTRAIN_INIT(&params_); }
    // Tensors are packed together up to this size.
    GradientsParams &bucket_bytes(uint64_t bytes) {
        params_.bucket_bytes = bytes;
        return *this;
    }
    // Least time between two checks of what is ready.
    template <class Rep, class Period>
    GradientsParams &cycle(std::chrono::duration<Rep, Period> duration) {
        params_.cycle_ns = detail::positive(duration, "cycle");
        return *this;
    }
    // A tensor that has waited this long for other ranks is logged (stall_warn) or fails
    // (stall_fail); FOREVER: never.
    template <class Rep, class Period>
    GradientsParams &stall_warn(std::chrono::duration<Rep, Period> duration) {
        params_.stall_warn_ns = detail::positive(duration, "stall_warn");
        return *this;
    }
    template <class Rep, class Period>
    GradientsParams &stall_fail(std::chrono::duration<Rep, Period> duration) {
        params_.stall_fail_ns = detail::positive(duration, "stall_fail");
        return *this;
    }
    const dtrain_gradients_params_t &raw() const noexcept { return params_; }

  private:
    dtrain_gradients_params_t params_;
};

// Named tensors, submitted in any order. Made by Communicator::gradients().
template <class Way> class GradientOperations {
  public:
    using Done = typename Way::Done;
    using Found = typename Way::Found;
    GradientOperations(Way way, std::shared_ptr<dtrain_gradients_t> gradients)
        : way_(std::move(way)), gradients_(std::move(gradients)) {}

    // array = the mean (or another op) of all ranks' arrays of this name
    Done submit(const std::string &name, Output array, Op op = Op::AVG) const {
        return submit(name, array, array, op);
    }
    Done submit(const std::string &name, Input array, Output out, Op op = Op::AVG) const {
        detail::fits("submit", array.count, array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_gradients_submit(gradients_.get(), name.c_str(), array.data, out.data,
                                           array.count, detail::number(array.dtype),
                                           detail::number(op), params, request);
        });
    }
    // For a rank without more data: it contributes zeros until all ranks have joined. The result's
    // peer is the rank that joined last.
    Found join() const {
        return way_.find([&](auto params, auto request) {
            return dtrain_gradients_join(gradients_.get(), params, nullptr, request);
        });
    }

  protected:
    Way way_;
    std::shared_ptr<dtrain_gradients_t> gradients_;
};

class Gradients : public GradientOperations<detail::Blocking> {
  public:
    using GradientOperations::GradientOperations;
    Gradients(Gradients &&) = default;
    Gradients &operator=(Gradients &&) = default;
    GradientOperations<detail::Started> start() const {
        return GradientOperations<detail::Started>(detail::Started{way_}, gradients_);
    }
    GradientOperations<detail::Started> start(const OpParams &params) const {
        return GradientOperations<detail::Started>(
            detail::Started{detail::Way{way_.comm, false, params}}, gradients_);
    }
    GradientOperations<detail::Blocking> with(const OpParams &params) const {
        return GradientOperations<detail::Blocking>(
            detail::Blocking{detail::Way{way_.comm, false, params}}, gradients_);
    }
    dtrain_gradients_counters_t stats() const {
        dtrain_gradients_counters_t stats;
        DTRAIN_INIT(&stats);
        detail::check(dtrain_gradients_stats(gradients_.get(), &stats));
        return stats;
    }
};

// Fields are those of dtrain_compressor_params_t.
class CompressorParams {
  public:
    CompressorParams(Compression kind, uint64_t count) noexcept {
        DTRAIN_INIT(&params_);
        params_.kind = static_cast<uint32_t>(kind);
        params_.count = count;
    }
    // Whether what a step does not send is added to the next one. Default: true.
    CompressorParams &feedback(bool on) { return flag(DTRAIN_COMPRESS_NO_FEEDBACK, !on); }
    CompressorParams &stochastic(bool on = true) { return flag(DTRAIN_COMPRESS_STOCHASTIC, on); }
    CompressorParams &block(uint32_t value) { return set(params_.block, value); }
    CompressorParams &rank(uint32_t value) { return set(params_.rank, value); }
    CompressorParams &rows(uint64_t value) { return set(params_.rows, value); }
    CompressorParams &seed(uint64_t value) { return set(params_.seed, value); }
    CompressorParams &ratio(double value) { return set(params_.ratio, value); }
    const dtrain_compressor_params_t &raw() const noexcept { return params_; }

  private:
    CompressorParams &flag(uint32_t bit, bool on) {
        params_.flags = on ? params_.flags | bit : params_.flags & ~bit;
        return *this;
    }
    template <class T> CompressorParams &set(T &field, T value) {
        field = value;
        return *this;
    }
    dtrain_compressor_params_t params_;
};

// Made by Communicator::compressor().
template <class Way> class CompressorOperations {
  public:
    using Done = typename Way::Done;
    CompressorOperations(Way way, std::shared_ptr<dtrain_compressor_t> compressor, uint64_t count)
        : way_(std::move(way)), compressor_(std::move(compressor)), count_(count) {}
    // array = approximately the mean (or sum) of all ranks' arrays
    Done allreduce(Output array, Op op = Op::AVG) const { return allreduce(array, array, op); }
    Done allreduce(Input array, Output out, Op op = Op::AVG) const {
        detail::fits("allreduce", count_, DType::F32, out);
        detail::fits("allreduce", array.count, array.dtype, out);
        return way_.run([&](auto params, auto request) {
            return dtrain_compressor_allreduce(
                compressor_.get(), static_cast<const float *>(array.data),
                static_cast<float *>(out.data), detail::number(op), params, request);
        });
    }

  protected:
    Way way_;
    std::shared_ptr<dtrain_compressor_t> compressor_;
    uint64_t count_;
};

class Compressor : public CompressorOperations<detail::Blocking> {
  public:
    using CompressorOperations::CompressorOperations;
    Compressor(Compressor &&) = default;
    Compressor &operator=(Compressor &&) = default;
    CompressorOperations<detail::Started> start(const OpParams &params = {}) const {
        return CompressorOperations<detail::Started>(
            detail::Started{detail::Way{way_.comm, false, params}}, compressor_, count_);
    }
    CompressorOperations<detail::Blocking> with(const OpParams &params) const {
        return CompressorOperations<detail::Blocking>(
            detail::Blocking{detail::Way{way_.comm, false, params}}, compressor_, count_);
    }
    // Discards what earlier steps have kept; call it on all ranks between the same two operations.
    void reset() const { detail::check(dtrain_compressor_reset(compressor_.get())); }
    dtrain_compression_stats_t stats() const {
        dtrain_compression_stats_t stats;
        detail::check(dtrain_compressor_stats(compressor_.get(), &stats));
        return stats;
    }
};

} // namespace cxx
} // namespace dtrain
#endif
