// PMIx: the key-value store of Open MPI's mpirun, PRRTE, and srun --mpi=pmix.
// SPDX-License-Identifier: Apache-2.0
//
// libpmix is opened when it is needed, so nothing is linked; what is declared here is its ABI,
// which has been the same since version 3. Source: the PMIx Standard, version 4.1, sections 5
// and 6.
#include "base/clock.h"
#include "base/shared_object.h"
#include "cluster/exchange/exchange.h"
#include "cluster/exchange/hex.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace dtrain::cluster {
namespace {

constexpr char library[] = "libpmix.so.2";

// The library's types.
struct Process {
    char space[256];
    uint32_t rank;
};
struct Value {
    uint16_t type;
    union {
        const char *string;
        uint64_t room[4]; // the union's other members, which are not used
    };
};
constexpr int32_t success = 0;
constexpr uint8_t to_all = 3;     // PMIX_GLOBAL
constexpr uint16_t text_type = 3; // PMIX_STRING
constexpr uint32_t everybody = UINT32_MAX - 1;
using OnDone = void(int32_t status, void *arg);
using OnValue = void(int32_t status, Value *value, void *arg);

struct Calls {
    int32_t (*PMIx_Init)(Process *own, void *info, size_t count);
    int32_t (*PMIx_Finalize)(const void *info, size_t count);
    int32_t (*PMIx_Put)(uint8_t scope, const char *key, Value *value);
    int32_t (*PMIx_Commit)();
    int32_t (*PMIx_Fence_nb)(const Process *who, size_t count, const void *info, size_t infos,
                             OnDone *done, void *arg);
    int32_t (*PMIx_Get_nb)(const Process *who, const char *key, const void *info, size_t infos,
                           OnValue *done, void *arg);
    const char *(*PMIx_Error_string)(int32_t status);
};

template <class F> Status find(const SharedObject &object, const char *name, F *&out) {
    void *symbol = nullptr;
    Status s = object.find_own(name, symbol);
    out = reinterpret_cast<F *>(symbol);
    return s;
}

Status load(Calls &out) {
    SharedObject object;
    Status s = object.open(library);
#define DTRAIN_FIND(name)                                                                          \
    if (s == DTRAIN_OK) s = find(object, #name, out.name)
    DTRAIN_FIND(PMIx_Init);
    DTRAIN_FIND(PMIx_Finalize);
    DTRAIN_FIND(PMIx_Put);
    DTRAIN_FIND(PMIx_Commit);
    DTRAIN_FIND(PMIx_Fence_nb);
    DTRAIN_FIND(PMIx_Get_nb);
    DTRAIN_FIND(PMIx_Error_string);
#undef DTRAIN_FIND
    return s == DTRAIN_OK ? s
                          : fail_within(s,
                                        "the launcher speaks PMIx, but %s cannot be used; install "
                                        "version 3 or later, or set DTRAIN_RENDEZVOUS",
                                        library);
}

// What a call of the library will bring, in one of its threads. The caller and that thread own it
// together, because the caller may give up first.
class Pending {
  public:
    static void on_done(int32_t status, void *arg) { settle(status, nullptr, arg); }
    static void on_value(int32_t status, Value *value, void *arg) {
        const bool is_text = status == success && value != nullptr && value->type == text_type;
        settle(status, is_text ? value->string : nullptr, arg);
    }
    // For the library's `arg`, which settle() takes over; drop() if the library refused the call.
    static void *share(const std::shared_ptr<Pending> &own) { return new std::shared_ptr(own); }
    static void drop(void *arg) { delete static_cast<std::shared_ptr<Pending> *>(arg); }

    bool wait(int64_t deadline_ns) {
        std::unique_lock lock(mutex_);
        const int64_t left_ns = std::clamp<int64_t>(deadline_ns - monotonic_clock().now_ns(), 0,
                                                    int64_t{1000000} * second);
        return settled_.wait_for(lock, std::chrono::nanoseconds(left_ns), [&] { return done_; });
    }
    int32_t status() const { return status_; }
    const std::string &text() const { return text_; }

  private:
    static void settle(int32_t status, const char *text, void *arg) {
        const std::shared_ptr<Pending> own = *static_cast<std::shared_ptr<Pending> *>(arg);
        drop(arg);
        const std::lock_guard lock(own->mutex_);
        own->status_ = status;
        if (text != nullptr) own->text_ = text;
        own->done_ = true;
        own->settled_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable settled_;
    bool done_ = false;
    int32_t status_ = 0;
    std::string text_;
};

class Pmix final : public Exchange {
  public:
    Pmix() = default;
    // Says goodbye: mpirun ends a job in which a process leaves without.
    ~Pmix() override {
        if (begun_by_ == getpid()) calls_.PMIx_Finalize(nullptr, 0);
    }
    Pmix(const Pmix &) = delete;
    Pmix &operator=(const Pmix &) = delete;

    Status pass(bool first, std::string &text, int64_t deadline_ns) override {
        const std::lock_guard lock(mutex_);
        if (begun_by_ != 0 && begun_by_ != getpid())
            return fail(
                DTRAIN_ERR_STATE,
                "this process was forked from one that the launcher (PMIx) has started, so it has "
                "no rank of its own; set DTRAIN_RENDEZVOUS, DTRAIN_RANK and DTRAIN_SIZE");
        Status s = begin();
        if (s == DTRAIN_OK) s = pass_round(first, text, deadline_ns);
        return s == DTRAIN_OK ? s : fail_within(s, "meeting through the launcher (PMIx)");
    }

  private:
    Status begin() {
        if (begun_by_ != 0) return DTRAIN_OK;
        if (Status s = load(calls_); s != DTRAIN_OK) return s;
        if (Status s = check("PMIx_Init", calls_.PMIx_Init(&own_, nullptr, 0)); s != DTRAIN_OK)
            return s;
        begun_by_ = getpid();
        return DTRAIN_OK;
    }

    Status pass_round(bool first, std::string &text, int64_t deadline_ns) {
        const std::string key = "dtrain.rendezvous." + std::to_string(rounds_++);
        if (first) {
            const std::string hex = "x" + to_hex(text);
            Value value = {};
            value.type = text_type;
            value.string = hex.c_str();
            if (Status s = check("PMIx_Put", calls_.PMIx_Put(to_all, key.c_str(), &value));
                s != DTRAIN_OK)
                return s;
        }
        if (Status s = check("PMIx_Commit", calls_.PMIx_Commit()); s != DTRAIN_OK) return s;
        Process who = own_;
        who.rank = everybody;
        std::string none;
        Status s = await("PMIx_Fence", deadline_ns, none, [&](void *arg) {
            return calls_.PMIx_Fence_nb(&who, 1, nullptr, 0, Pending::on_done, arg);
        });
        if (s == DTRAIN_ERR_TIMEOUT)
            return fail_within(s, "not all processes of the job have come to join");
        if (s != DTRAIN_OK) return s;
        who.rank = 0;
        std::string found;
        s = await("PMIx_Get", deadline_ns, found, [&](void *arg) {
            return calls_.PMIx_Get_nb(&who, key.c_str(), nullptr, 0, Pending::on_value, arg);
        });
        if (s != DTRAIN_OK) return s;
        if (found.empty() || found[0] != 'x' || !from_hex(found.substr(1), text))
            return fail(DTRAIN_ERR_CONFIG, "process 0 has not passed on where it listens");
        return DTRAIN_OK;
    }

    // Runs a call of the library that ends in one of its threads.
    template <class F>
    Status await(const char *name, int64_t deadline_ns, std::string &text, F &&call) {
        const auto pending = std::make_shared<Pending>();
        void *arg = Pending::share(pending);
        if (Status s = check(name, call(arg)); s != DTRAIN_OK) {
            Pending::drop(arg);
            return s;
        }
        if (!pending->wait(deadline_ns)) return fail(DTRAIN_ERR_TIMEOUT, "%s", name);
        text = pending->text();
        return check(name, pending->status());
    }

    Status check(const char *name, int32_t status) const {
        if (status == success) return DTRAIN_OK;
        const char *why = calls_.PMIx_Error_string(status);
        return fail(DTRAIN_ERR_IO, "%s: %s (%d)", name, why != nullptr ? why : "unknown", status);
    }

    std::mutex mutex_;
    Calls calls_ = {};
    Process own_ = {};
    int begun_by_ = 0; // the process; a forked child must not speak
    uint32_t rounds_ = 0;
};

bool offered(const Variables &env, int32_t rank, int32_t /*size*/) {
    int32_t own = 0;
    return env.has("PMIX_NAMESPACE") && env.number("PMIX_RANK", 0, INT32_MAX, own) == DTRAIN_OK &&
           own == rank;
}

Status open(const Variables & /*env*/, Exchange *&out) {
    static Pmix only;
    out = &only;
    return DTRAIN_OK;
}

} // namespace

const ExchangeKind pmix_exchange = {"pmix", "the launcher's PMIx", offered, open};

} // namespace dtrain::cluster
