// Options, contexts, memory, and the calls to join or serve a job.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_CONTEXT_HPP
#define DTRAIN_CONTEXT_HPP
#include "communicator.hpp"
#include "function.hpp"

#include <initializer_list>
#include <list>

namespace dtrain {
inline namespace cxx {

// Settings by key. They override the environment, which overrides the file that it names.
class Options {
  public:
    Options() {
        dtrain_options_t *options = nullptr;
        detail::check(dtrain_options_create(&options));
        handle_ = detail::own(options, dtrain_options_destroy);
    }
    Options(std::initializer_list<std::pair<const char *, std::string>> settings) : Options() {
        for (const auto &[key, value] : settings) set(key, value);
    }
    Options &set(const char *key, const std::string &value) {
        detail::check(dtrain_options_set(handle_.get(), key, value.c_str()));
        return *this;
    }
    template <class Rep, class Period>
    Options &set(const char *key, std::chrono::duration<Rep, Period> duration) {
        return set(key, std::to_string(detail::nanoseconds(duration)) + "ns");
    }
    // Reads lines "key = value".
    Options &load(const std::string &path) {
        detail::check(dtrain_options_load(handle_.get(), path.c_str()));
        return *this;
    }
    std::string get(const char *key) const {
        std::string value(4096, '\0');
        detail::check(dtrain_options_get(handle_.get(), key, &value[0], value.size()));
        value.resize(value.find('\0'));
        return value;
    }
    const dtrain_options_t *handle() const noexcept { return handle_.get(); }

  private:
    std::shared_ptr<dtrain_options_t> handle_;
};

struct OptionInfo {
    std::string key, initial, about;
};
inline std::vector<OptionInfo> describe_options() {
    std::vector<OptionInfo> found;
    for (;;) {
        const char *key = nullptr, *initial = nullptr, *about = nullptr;
        const Status status =
            dtrain_options_describe(static_cast<uint32_t>(found.size()), &key, &initial, &about);
        if (status == DTRAIN_ERR_NOT_FOUND) return found;
        detail::check(status);
        found.push_back(OptionInfo{key, initial, about});
    }
}

// Each rank passes some bytes and gets those of all ranks, in rank order.
using AllGather = std::function<void(Span<const std::byte> mine, Span<std::byte> all)>;

// Fields that are not set are taken from the environment.
class JoinParams {
  public:
    JoinParams() noexcept { DTRAIN_INIT(&params_); }
    JoinParams &size(int ranks) {
        params_.size = ranks;
        return *this;
    }
    JoinParams &rank(int mine) {
        params_.rank = mine;
        return *this;
    }
    // Waits until the workers of a running elastic job take this process in.
    JoinParams &newcomer() { return size(DTRAIN_NEWCOMER); }
    JoinParams &servers(int count) {
        params_.servers = count;
        return *this;
    }
    template <class Rep, class Period>
    JoinParams &timeout(std::chrono::duration<Rep, Period> duration) {
        params_.timeout_ns = detail::positive(duration, "timeout");
        return *this;
    }
    // For the rendezvous "oob". If it throws, Context::join() throws its error with the exception
    // nested in it.
    JoinParams &allgather(AllGather function) {
        allgather_ = std::move(function);
        return *this;
    }

  private:
    friend class Context;
    dtrain_comm_params_t params_;
    AllGather allgather_;
};

class ServeParams {
  public:
    ServeParams() noexcept { DTRAIN_INIT(&params_); }
    ServeParams &size(int workers) {
        params_.size = workers;
        return *this;
    }
    ServeParams &servers(int count) {
        params_.servers = count;
        return *this;
    }
    ServeParams &index(int mine) {
        params_.index = mine;
        return *this;
    }
    template <class Rep, class Period>
    ServeParams &timeout(std::chrono::duration<Rep, Period> duration) {
        params_.timeout_ns = detail::positive(duration, "timeout");
        return *this;
    }
    ServeParams &allgather(AllGather function) {
        allgather_ = std::move(function);
        return *this;
    }

  private:
    friend class Context;
    dtrain_server_params_t params_;
    AllGather allgather_;
};

// A parameter server that serves in the background. Made by Context::serve().
class Server {
  public:
    explicit Server(std::shared_ptr<dtrain_server_t> handle) noexcept
        : handle_(std::move(handle)) {}
    Server(Server &&) = default;
    Server &operator=(Server &&) = default;
    // Waits until all workers have left; throws the error if the job failed.
    void wait() const { detail::check(dtrain_server_wait(handle_.get(), -1)); }
    // As wait(), at most this long; returns whether all workers have left.
    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> duration) const {
        const Status status = dtrain_server_wait(handle_.get(), detail::nanoseconds(duration));
        detail::check(status);
        return status == DTRAIN_OK;
    }
    // What the server has counted, as text for Prometheus.
    std::string stats() const {
        return detail::text_of([this](char *buffer, size_t size) {
            return dtrain_stats_server(handle_.get(), buffer, size);
        });
    }

  private:
    std::shared_ptr<dtrain_server_t> handle_;
};

// Memory that is registered with the transports: allocated by Context::allocate(), or the
// program's.
class Memory {
  public:
    Memory(std::shared_ptr<dtrain_mem_t> handle, size_t bytes) noexcept
        : handle_(std::move(handle)), bytes_(bytes) {}
    Memory(Memory &&) = default;
    Memory &operator=(Memory &&) = default;
    void *data() const noexcept { return dtrain_mem_address(handle_.get()); }
    size_t bytes() const noexcept { return bytes_; }
    template <class T> Span<T> view() const noexcept {
        return Span<T>(static_cast<T *>(data()), bytes_ / sizeof(T));
    }
    dtrain_mem_t *handle() const noexcept { return handle_.get(); }

  private:
    std::shared_ptr<dtrain_mem_t> handle_;
    size_t bytes_;
};

enum class Role : uint32_t {
    WORKER = DTRAIN_ROLE_WORKER,
    SERVER = DTRAIN_ROLE_SERVER,
    EVALUATOR = DTRAIN_ROLE_EVALUATOR // no member of the job: it follows the job's checkpoints
};
enum class LogLevel : int32_t {
    ERROR_ = DTRAIN_LOG_ERROR, // some headers define a macro ERROR
    WARN = DTRAIN_LOG_WARN,
    INFO = DTRAIN_LOG_INFO,
    DEBUG_ = DTRAIN_LOG_DEBUG
};
// Called from any thread; must not call dtrain. If it throws, the text goes to stderr.
using LogSink = std::function<void(LogLevel level, const char *line)>;

// Opens the transports. The context lives until everything made with it is destroyed.
class Context {
  public:
    Context() : Context(nullptr) {}
    explicit Context(const Options &options) : Context(options.handle()) {}
    Context(Context &&) = default;
    Context &operator=(Context &&) = default;

    // Joins a job: by the environment, "tcp://host:port", "file:///dir/name", or "oob". Collective.
    Communicator join(const std::string &rendezvous = "env", const JoinParams &params = {}) const {
        return Communicator(made(dtrain_comm_create, dtrain_comm_destroy, rendezvous, params));
    }
    // How join() with these arguments would join from this process, as JSON: as what, where, and
    // what says so or stands against it; and what each launcher's environment says here.
    static std::string describe_join(const std::string &rendezvous = "env",
                                     const JoinParams &params = {}) {
        return detail::text_of([&](char *buffer, size_t size) {
            return dtrain_join_describe(rendezvous.c_str(), &params.params_, buffer, size);
        });
    }
    // As what the environment starts this process.
    static Role role() {
        uint32_t role = 0;
        detail::check(dtrain_join_role(&role));
        return static_cast<Role>(role);
    }
    // Joins a job as a parameter server, which then serves in the background.
    Server serve(const std::string &rendezvous = "env", const ServeParams &params = {}) const {
        return Server(made(dtrain_server_create, dtrain_server_destroy, rendezvous, params));
    }
    // Creates a queue that can hold `depth` finished operations (0: 1024).
    Queue queue(uint32_t depth = 0) const {
        dtrain_cq_t *queue = nullptr;
        detail::check(dtrain_cq_create(handle(), depth, &queue));
        return Queue(detail::own(queue, dtrain_cq_destroy, state_));
    }
    // Allocates zeroed memory; collectives between ranks of one host need not copy it.
    Memory allocate(size_t bytes) const {
        dtrain_mem_t *memory = nullptr;
        detail::check(dtrain_mem_alloc(handle(), bytes, &memory));
        return Memory(detail::own(memory, dtrain_mem_deregister, state_), bytes);
    }
    // Allocates memory of a GPU, with undefined contents. shared: for reductions between the ranks
    // on this GPU without copies.
    Memory allocate_on_device(size_t bytes, int32_t device = 0, bool shared = false) const {
        dtrain_mem_params_t params;
        DTRAIN_INIT(&params);
        params.mem_type = DTRAIN_MEM_CUDA;
        params.length = bytes;
        params.device = device;
        params.flags = shared ? DTRAIN_MEM_SHARED : 0;
        dtrain_mem_t *memory = nullptr;
        detail::check(dtrain_mem_create(handle(), &params, &memory));
        return Memory(detail::own(memory, dtrain_mem_deregister, state_), bytes);
    }
    // Registers memory of the program. shared: moves its pages into memory that the host's other
    // ranks can map. No thread may write to the pages during this call.
    Memory register_memory(void *address, size_t bytes, bool shared = false) const {
        dtrain_mem_params_t params;
        DTRAIN_INIT(&params);
        params.address = address;
        params.length = bytes;
        params.flags = shared ? DTRAIN_MEM_SHARED : 0;
        dtrain_mem_t *memory = nullptr;
        detail::check(dtrain_mem_register(handle(), &params, &memory));
        return Memory(detail::own(memory, dtrain_mem_deregister, state_), bytes);
    }
    // Registers an update rule with the server of this context, for tables that are created later.
    void register_function(Function function) const {
        state_->functions.emplace_back(std::move(function));
        const dtrain_function_t raw = state_->functions.back().whole();
        const Status status = dtrain_function_register(handle(), &raw);
        if (status < 0) {
            const std::string text = detail::last_error();
            state_->functions.pop_back();
            detail::throw_error(status, text);
        }
    }
    // Sets the function that gets log lines; {}: back to stderr.
    void set_log(LogSink sink) const {
        auto next = std::make_unique<LogSink>(std::move(sink));
        detail::check(dtrain_context_set_log(
            handle(), *next ? &Context::log : static_cast<dtrain_log_fn>(nullptr), next.get()));
        state_->log = std::move(next);
    }
    // What this build and machine can do, as JSON: transports, kernels, limits.
    std::string describe() const {
        return detail::text_of([this](char *buffer, size_t size) {
            return dtrain_context_describe(handle(), buffer, size);
        });
    }
    // Does some work and returns how much; needed with the option progress=manual.
    int progress() const {
        const int32_t done = dtrain_context_progress(handle());
        detail::check(done);
        return done;
    }
    // Writes a timeline of this rank to a file, for ui.perfetto.dev; %r in path is the rank.
    void start_timeline(const std::string &path) const {
        detail::check(dtrain_timeline_start(handle(), path.c_str()));
    }
    void mark_timeline(const std::string &name) const {
        detail::check(dtrain_timeline_mark(handle(), name.c_str()));
    }
    void stop_timeline() const { detail::check(dtrain_timeline_stop(handle())); }
    // How the index-th transport of describe() has handled the program's memory.
    dtrain_device_stats_t device_stats(uint32_t index) const {
        dtrain_device_stats_t stats;
        DTRAIN_INIT(&stats);
        detail::check(dtrain_stats_device(handle(), index, &stats));
        return stats;
    }
    dtrain_context_t *handle() const noexcept { return state_->handle.get(); }

  private:
    struct State { // the handle is destroyed first: until then callbacks may run
        std::list<Function> functions;
        std::unique_ptr<LogSink> log;
        std::shared_ptr<dtrain_context_t> handle;
    };
    explicit Context(const dtrain_options_t *options) : state_(std::make_shared<State>()) {
        dtrain_context_t *context = nullptr;
        detail::check(dtrain_context_create(DTRAIN_API_VERSION, options, &context));
        state_->handle = detail::own(context, dtrain_context_destroy);
    }
    struct Exchange {
        const AllGather *function;
        size_t size;
        detail::Caught caught;
        static int32_t allgather(void *arg, const void *send, void *recv, size_t len) {
            auto *self = static_cast<Exchange *>(arg);
            return self->caught.run(-1, [&] {
                (*self->function)({static_cast<const std::byte *>(send), len},
                                  {static_cast<std::byte *>(recv), len * self->size});
                return 0;
            });
        }
    };
    static void log(void *arg, int32_t level, const char *line) {
        (*static_cast<LogSink *>(arg))(static_cast<LogLevel>(level), line);
    }
    template <class T, class Create, class Params>
    std::shared_ptr<T> made(Create create, Status (*end)(T *), const std::string &rendezvous,
                            const Params &given) const {
        auto params = given.params_;
        Exchange exchange{&given.allgather_,
                          static_cast<size_t>(params.size) +
                              static_cast<size_t>(given.params_.servers),
                          {}};
        if (given.allgather_) {
            params.oob = &Exchange::allgather;
            params.oob_arg = &exchange;
        }
        T *made = nullptr;
        exchange.caught.check(create(handle(), rendezvous.c_str(), &params, &made));
        return detail::own(made, end, state_);
    }
    std::shared_ptr<State> state_;
};

// The version of the library; the header's version is DTRAIN_API_VERSION.
inline std::string version() { return dtrain_version_string(); }

} // namespace cxx
} // namespace dtrain
#endif
