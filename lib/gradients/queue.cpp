// The calls of the program's threads on a queue. See cycle.cpp for the queue's own thread.
// SPDX-License-Identifier: Apache-2.0
#include "gradients/queue.h"

#include "base/thread.h"
#include "collectives/communicator/agreement.h"

#include <algorithm>

namespace dtrain::gradients {
namespace {

constexpr uint64_t exchange_bytes = 16 << 20; // limit of all ranks' announcements in one exchange
constexpr uint64_t least_bucket = 4 << 10, most_bucket = uint64_t{1} << 30;
constexpr int64_t longest_cycle = 1 * second;
// The queues' threads wait for each other at least this long, even if op.timeout is shorter.
constexpr int64_t least_timeout = 60 * second;

Status check_params(const QueueParams &p) {
    if (p.bucket_bytes != 0 && (p.bucket_bytes < least_bucket || p.bucket_bytes > most_bucket))
        return fail(DTRAIN_ERR_INVALID, "gradients: bucket_bytes is %llu; %llu to %llu are allowed",
                    static_cast<unsigned long long>(p.bucket_bytes),
                    static_cast<unsigned long long>(least_bucket),
                    static_cast<unsigned long long>(most_bucket));
    if (p.cycle_ns < 0 || p.cycle_ns > longest_cycle)
        return fail(DTRAIN_ERR_INVALID, "gradients: cycle_ns is %lld; 0 to 1 s are allowed",
                    static_cast<long long>(p.cycle_ns));
    return DTRAIN_OK;
}

int64_t or_option(int64_t given, const Options &options, const char *key) {
    return given != 0 ? given : options.number(key);
}

int64_t or_never(int64_t ns) { return ns <= 0 ? INT64_MAX : ns; }

} // namespace

Status Queue::create(collectives::Communicator &parent, const QueueParams &params,
                     memory::Registry &registry, std::shared_ptr<Queue> &out) {
    const int64_t deadline_ns = parent.deadline(0);
    const Options &options = parent.session().options();
    Limits limits;
    limits.bucket_bytes =
        std::clamp(uint64_t(or_option(int64_t(params.bucket_bytes), options, "gradients.bucket")),
                   least_bucket, most_bucket) /
        64 * 64;
    limits.known_tensors =
        std::clamp(uint64_t(options.number("gradients.known")), uint64_t{1}, uint64_t{max_tensors});
    collectives::Agreement agreement(cluster::CallKind::gradients_create);
    agreement.check(check_params(params))
        .add("bucket_bytes (option gradients.bucket)", limits.bucket_bytes)
        .add("option gradients.known", limits.known_tensors);
    if (Status s = agreement.reach(parent, deadline_ns); s != DTRAIN_OK) return s;
    std::unique_ptr<collectives::Communicator> own;
    if (Status s = parent.duplicate_until(deadline_ns, own); s != DTRAIN_OK)
        return fail_within(s, "gradients_create");
    limits.fresh_bytes =
        std::clamp(exchange_bytes / uint64_t(own->size()), uint64_t{2} << 10, limits.fresh_bytes);
    limits.stall_warn_ns = or_never(or_option(params.stall_warn_ns, options, "gradients.stall"));
    limits.stall_fail_ns =
        or_never(or_option(params.stall_fail_ns, options, "gradients.stall_limit"));
    int64_t cycle_ns = or_option(params.cycle_ns, options, "gradients.cycle");
    std::shared_ptr<Queue> made(new Queue(std::move(own), registry, limits, cycle_ns));
    if (Status s =
            start_thread(made->thread_, "dtrain-grad", [queue = made.get()] { queue->run(); });
        s != DTRAIN_OK) {
        std::string text = error_text(); // the other ranks' queues would wait for this one
        (void)made->communicator_->abort(text.c_str());
        return fail(s, "%s", text.c_str());
    }
    out = std::move(made);
    return DTRAIN_OK;
}

Queue::Queue(std::unique_ptr<collectives::Communicator> communicator, memory::Registry &registry,
             const Limits &limits, int64_t cycle_ns)
    : communicator_(std::move(communicator)), agent_(communicator_->session().agent()),
      cycle_ns_(cycle_ns),
      timeout_ns_(std::max(communicator_->session().op_timeout_ns(), least_timeout)),
      reducer_(*communicator_, registry, limits.bucket_bytes, timeout_ns_, due_ns_),
      negotiation_(communicator_->rank(), communicator_->size(), limits) {}

Queue::~Queue() {
    {
        std::lock_guard lock(mutex_);
        negotiation_.close();
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

// ---- submitting ----

Status Queue::check_open() {
    if (ended_ == DTRAIN_OK) return DTRAIN_OK;
    return fail(ended_, "%s", ended_text_.c_str());
}

int64_t Queue::expiry(int64_t timeout_ns, int64_t now_ns) const {
    int64_t expires_ns;
    bool never = timeout_ns < 0 || __builtin_add_overflow(now_ns, timeout_ns, &expires_ns);
    return never ? INT64_MAX : expires_ns;
}

Status Queue::submit(Submission submission, const Buffers &buffers, engine::Request *request,
                     int64_t timeout_ns, bool blocking, bool awaited) {
    submission.submitted_ns = agent_.clock().now_ns();
    submission.expires_ns =
        expiry(communicator_->session().time_limit(timeout_ns), submission.submitted_ns);
    {
        std::lock_guard lock(mutex_);
        if (Status s = check_open(); s != DTRAIN_OK) return s;
        uint64_t id = submission.id = ++ids_;
        const int64_t expires_ns = submission.expires_ns;
        if (Status s = negotiation_.submit(std::move(submission)); s != DTRAIN_OK) return s;
        work_.emplace(id, Work{buffers, request, expires_ns});
        if (expires_ns < due_ns_) due_ns_ = expires_ns;
        news_ = true;
        urgent_ = urgent_ || blocking || awaited;
        changed_.notify_one();
    }
    if (blocking) wait_for(*request);
    return DTRAIN_OK;
}

Status Queue::join(engine::Request *request, int64_t timeout_ns, bool blocking) {
    {
        std::lock_guard lock(mutex_);
        if (Status s = check_open(); s != DTRAIN_OK) return s;
        if (timeout_ns == 0) timeout_ns = -1;
        const int64_t expires_ns = expiry(timeout_ns, agent_.clock().now_ns());
        joins_.push_back({request, expires_ns});
        if (expires_ns < due_ns_) due_ns_ = expires_ns;
        if (!negotiation_.has_joined()) negotiation_.join();
        changed_.notify_one();
    }
    if (blocking) wait_for(*request);
    return DTRAIN_OK;
}

// Sleeps, because the queue's thread moves the data: a second thread would only compete with it.
void Queue::wait_for(engine::Request &request) {
    while (!request.done()) request.sleep(1 * second);
}

void Queue::abort(const char *reason) {
    (void)communicator_->abort(reason); // on failure, the others find out by themselves
    std::lock_guard lock(mutex_);
    urgent_ = true;
    changed_.notify_one();
}

Stats Queue::stats() {
    std::lock_guard lock(mutex_);
    return stats_;
}

} // namespace dtrain::gradients
