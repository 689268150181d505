// Operations in flight, completion queues, and the three ways to run an operation.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_REQUEST_HPP
#define DTRAIN_REQUEST_HPP
#include "types.hpp"

#include <utility>

namespace dtrain {
inline namespace cxx {

// The outcome of a finished operation.
struct Result {
    uint64_t bytes = 0;   // moved into the caller's buffer (receive, pull)
    int peer = -1;        // the sender of what was received
    uint64_t version = 0; // of tables: the version that was read or made
};

// An operation that was started or prepared. Its arrays belong to the library until it has
// finished: the destructor of an unfinished request waits for that, at most for the operation's
// timeout (option op.timeout).
class Request {
  public:
    Request() noexcept = default;
    explicit Request(dtrain_request_t *handle, std::shared_ptr<void> owner = {}) noexcept
        : handle_(handle), owner_(std::move(owner)) {}
    Request(Request &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), owner_(std::move(other.owner_)) {}
    Request &operator=(Request &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(owner_, other.owner_);
        return *this;
    }
    ~Request() {
        if (handle_ == nullptr) return;
        dtrain_request_wait(handle_, -1);
        dtrain_request_free(handle_);
    }

    bool valid() const noexcept { return handle_ != nullptr; }
    // Whether it has finished, successfully or not.
    bool done() const noexcept { return dtrain_request_test(handle_) != DTRAIN_IN_PROGRESS; }
    // Waits for the operation; returns its result or throws its error.
    Result wait() const { return outcome(dtrain_request_wait(handle_, -1)); }
    // As wait(), at most this long; returns whether it has finished. wait() then has the result.
    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> duration) const {
        return dtrain_request_wait(handle_, detail::nanoseconds(duration)) != DTRAIN_IN_PROGRESS;
    }
    // As wait(), but throws a StateError if the operation has not finished.
    Result result() const {
        dtrain_event_t event;
        detail::check(dtrain_request_result(handle_, &event));
        return outcome(event.status);
    }
    // Asks the operation to end early: it still finishes, with a CanceledError if nothing was done
    // yet. StateError: it is a collective that other ranks may have begun.
    void cancel() const { detail::check(dtrain_request_cancel(handle_)); }
    // Starts a prepared operation again.
    void start() const { detail::check(dtrain_request_start(&handle_, 1)); }
    // Frees the handle; the operation continues. Its arrays must live until it is done.
    void detach() noexcept { dtrain_request_free(std::exchange(handle_, nullptr)); }
    dtrain_request_t *handle() const noexcept { return handle_; }

  private:
    Result outcome(Status status) const {
        dtrain_event_t event;
        if (dtrain_request_result(handle_, &event) != DTRAIN_OK)
            detail::throw_last(status); // the wait failed, not the operation
        if (event.status < 0) fail(event);
        return Result{event.bytes, event.peer, event.version};
    }
    [[noreturn, gnu::cold, gnu::noinline]] void fail(const dtrain_event_t &event) const {
        detail::throw_error(event.status, detail::text_of([this](char *buffer, size_t size) {
                                return dtrain_request_error(handle_, buffer, size);
                            }),
                            event.peer);
    }
    dtrain_request_t *handle_ = nullptr;
    std::shared_ptr<void> owner_; // kept alive while the operation is prepared
};

// Waits for all requests, then throws the first error, if any.
template <class Requests> void wait_all(Requests &&requests) {
    std::exception_ptr first;
    for (auto &request : requests) {
        try {
            request.wait();
        } catch (const Error &) {
            if (!first) first = std::current_exception();
        }
    }
    if (first) std::rethrow_exception(first);
}

// A queue of finished operations, of those with OpParams().queue(...). Made by Context::queue().
class Queue {
  public:
    explicit Queue(std::shared_ptr<dtrain_cq_t> handle) noexcept : handle_(std::move(handle)) {}
    // Takes events and waits up to timeout for the first; returns the filled part of the array. The
    // event of a failed operation has its status.
    template <class Rep, class Period>
    Span<dtrain_event_t> poll(Span<dtrain_event_t> events,
                              std::chrono::duration<Rep, Period> timeout) const {
        const int32_t count =
            dtrain_cq_poll(handle_.get(), events.data(), static_cast<uint32_t>(events.size()),
                           detail::nanoseconds(timeout));
        detail::check(count);
        return events.subspan(0, static_cast<size_t>(count));
    }
    // A descriptor for poll() and epoll: readable while events wait.
    int fd() const {
        const int32_t fd = dtrain_cq_fd(handle_.get());
        detail::check(fd);
        return fd;
    }
    dtrain_cq_t *handle() const noexcept { return handle_.get(); }

  private:
    std::shared_ptr<dtrain_cq_t> handle_;
};

// How an operation runs: comm.with(OpParams().timeout(5s).priority(1)).allreduce(gradient).
class OpParams {
  public:
    OpParams() noexcept { DTRAIN_INIT(&params_); }
    // Replaces the option op.timeout; FOREVER: no timeout.
    template <class Rep, class Period>
    OpParams &timeout(std::chrono::duration<Rep, Period> duration) {
        return set(params_.timeout_ns, detail::positive(duration, "timeout"));
    }
    // Higher goes first; 0 is normal.
    OpParams &priority(int value) { return set(params_.priority, value); }
    // Factors for each element of a reduction's floating-point input (prescale) and result
    // (postscale).
    OpParams &prescale(double factor) { return set(params_.prescale, factor); }
    OpParams &postscale(double factor) { return set(params_.postscale, factor); }
    // The weight of a push in an average.
    OpParams &weight(double value) { return set(params_.weight, value); }
    // A pull waits until this many updates have been applied.
    OpParams &min_version(uint64_t value) { return set(params_.min_version, value); }
    // The queue that gets the event of the completion, with this tag. The call then returns at
    // once, even without a request.
    OpParams &queue(const Queue &queue, uint64_t tag = 0) {
        params_.user_tag = tag;
        return set(params_.cq, queue.handle());
    }
    // The C struct, for fields that have no setter here.
    dtrain_op_params_t &raw() noexcept { return params_; }
    const dtrain_op_params_t &raw() const noexcept { return params_; }

  private:
    template <class T, class V> OpParams &set(T &field, V value) {
        field = value;
        return *this;
    }
    dtrain_op_params_t params_;
};

namespace detail {

// The communicator and parameters that operations run with. Derived classes differ in what a call
// returns.
struct Way {
    std::shared_ptr<dtrain_comm_t> comm; // also to ask which ranks failed
    bool plain = true;                   // run without parameters
    OpParams params{};

    [[noreturn, gnu::cold, gnu::noinline]] void fail(Status status) const {
        const std::string text = last_error();
        int32_t rank = -1;
        if (status == DTRAIN_ERR_PEER) dtrain_comm_failed(comm.get(), &rank, 1);
        throw_error(status, text, rank);
    }
    template <class Call> Request request(Call &&call, uint32_t flags) const {
        dtrain_op_params_t with = params.raw();
        with.flags |= flags;
        dtrain_request_t *handle = nullptr;
        check(call(&with, &handle));
        return Request(handle, flags == DTRAIN_OP_PERSISTENT ? comm : nullptr);
    }
};

// Each call returns when the operation is done.
struct Blocking : Way {
    using Done = void;
    using Found = Result;
    template <class Call> void run(Call &&call) const {
        const Status status = call(plain ? nullptr : &params.raw(), nullptr);
        if (status < 0) fail(status);
    }
    template <class Call> Result find(Call &&call) const {
        if (params.raw().cq != nullptr) return run(call), Result{};
        return request(call, DTRAIN_OP_AWAITED).wait();
    }
};

// Each call starts the operation and returns its request.
struct Started : Way {
    using Done = Request;
    using Found = Request;
    template <class Call> Request run(Call &&call) const { return request(call, 0); }
    template <class Call> Request find(Call &&call) const { return request(call, 0); }
};

// Each call prepares the operation; Request::start() starts it, as often as it is called.
struct Prepared : Way {
    using Done = Request;
    using Found = Request;
    template <class Call> Request run(Call &&call) const {
        return request(call, DTRAIN_OP_PERSISTENT);
    }
    template <class Call> Request find(Call &&call) const { return run(call); }
};

inline const char *text(DType dtype) {
    static const char *const names[] = {"?",   "f32", "f64", "f16", "bf16", "i8", "u8",
                                        "i16", "u16", "i32", "u32", "i64",  "u64"};
    const auto number = static_cast<uint32_t>(dtype);
    return number < sizeof names / sizeof names[0] ? names[number] : names[0];
}

[[noreturn, gnu::cold, gnu::noinline]] inline void
throw_sizes(const char *call, const char *what, uint64_t wanted, DType dtype, const Output &out) {
    throw InvalidError(std::string(call) + ": " + what + " has to hold " + std::to_string(wanted) +
                       " " + text(dtype) + ", not " + std::to_string(out.count) + " " +
                       text(out.dtype));
}

// Checks that the output holds `count` elements of this dtype.
inline void fits(const char *call, uint64_t count, DType dtype, const Output &out) {
    if (out.count != count || out.dtype != dtype)
        throw_sizes(call, "the output", count, dtype, out);
}
inline uint32_t number(DType dtype) { return static_cast<uint32_t>(dtype); }
inline uint32_t number(Op op) { return static_cast<uint32_t>(op); }

} // namespace detail
} // namespace cxx
} // namespace dtrain
#endif
