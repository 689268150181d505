// What must hold of every call.
// SPDX-License-Identifier: Apache-2.0
#include "caller.h"
#include "server_calls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

namespace dtrain::simulator {
namespace {

// Beyond its timeout, a call may look for what has already come; and one thread runs at a time.
constexpr int64_t slack = 2 * second;

constexpr dtrain_status_t never_right[] = {DTRAIN_ERR_INTERNAL, DTRAIN_ERR_INVALID,
                                           DTRAIN_ERR_CORRUPT, DTRAIN_ERR_MISMATCH,
                                           DTRAIN_ERR_UNSUPPORTED};

// A list of ranks, "1,3-5".
std::vector<int> ranks_in(const char *list) {
    std::vector<int> out;
    for (;; list++) {
        char *end = nullptr;
        const auto first = int(strtol(list, &end, 10));
        if (end == list) return out;
        const int last = *end == '-' ? int(strtol(end + 1, &end, 10)) : first;
        for (int i = first; i <= last; i++) out.push_back(i);
        if (*end != ',') return out;
        list = end;
    }
}

// The ranks of a communicator that could not be made: "... of ranks 1,3-5 of the job: ...", whose
// numbers are the processes' in a first job. A second one makes no other communicators.
std::vector<int> not_made(const std::string &text) {
    static constexpr std::string_view begin = "making a communicator of ranks ";
    const size_t at = text.find(begin);
    return at == std::string::npos ? std::vector<int>{}
                                   : ranks_in(text.c_str() + at + begin.size());
}

// Whatever the network of a life does, it changes no bits.
void see_line(void *arg, int32_t, const char *line) {
    if (tells_calls)
        fprintf(stderr, "%.9f process %d logs: %s\n", double(world->clock) / second,
                static_cast<Caller *>(arg)->process, line);
    if (strstr(line, "was changed on its way") != nullptr)
        fail_life("process %d: %s", static_cast<Caller *>(arg)->process, line);
}

} // namespace

std::string last_error() {
    char text[1024];
    dtrain_last_error(text, sizeof text);
    return text;
}

bool names_rank(const std::string &text, int rank) {
    for (const std::string_view word : {"rank ", "ranks "})
        for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
            at += word.size();
            if (std::ranges::count(ranks_in(text.c_str() + at), rank) > 0) return true;
        }
    return false;
}

dtrain_context_t *Caller::make_context() {
    dtrain_options_t *options = nullptr;
    dtrain_context_t *context = nullptr;
    begin();
    if (!check(dtrain_options_create(&options), "options", second)) return nullptr;
    for (auto &[key, value] : plan.options)
        check(dtrain_options_set(options, key.c_str(), value.c_str()), "option", second);
    if (plan.has_racks)
        check(dtrain_options_set(options, "topology", process % 2 == 0 ? "a" : "b"), "option",
              second);
    check(dtrain_context_create(DTRAIN_API_VERSION, options, &context), "context", second);
    if (context != nullptr) check(dtrain_context_set_log(context, see_line, this), "log", second);
    if (context != nullptr) check(register_function(context), "function", second);
    dtrain_options_destroy(options);
    return context;
}

bool Caller::check(dtrain_status_t status, const char *call, int64_t limit) {
    const int64_t took = world->clock - begun_;
    world->ended[size_t(-status) % std::size(world->ended)]++;
    if (took > limit + slack + plan.stopped(process))
        fail_life("process %d: %s took %.3f s, its timeout is %.3f s: %s: %s", process, call,
                  double(took) / second, double(limit) / second, dtrain_status_name(status),
                  status == DTRAIN_OK ? "" : last_error().c_str());
    if (tells_calls)
        fprintf(stderr, "%.9f process %d: %s: %s %s\n", double(world->clock) / second, process,
                call, dtrain_status_name(status), status == DTRAIN_OK ? "" : last_error().c_str());
    if (status == DTRAIN_OK && call == std::string_view("join")) world->joined |= 1u << process;
    if (status == DTRAIN_OK) return true;
    if (!plan.may_fail())
        fail_life("process %d: %s failed though nothing had happened: %s: %s", process, call,
                  dtrain_status_name(status), last_error().c_str());
    if (std::ranges::find(never_right, status) != std::end(never_right))
        fail_life("process %d: %s: %s: %s", process, call, dtrain_status_name(status),
                  last_error().c_str());
    check_told(status, call);
    check_blame(status, call);
    return false;
}

// A call that waits for one that is dead ends since that is known, not since its time is over. Rank
// 0 finds it, and tells the others. One that lacks memory may have given up a call for which
// others wait, as nothing was posted; and two that cannot reach each other may both reach rank 0.
// One that waits for the others of its next job is not told by this one.
void Caller::check_told(dtrain_status_t status, const char *call) const {
    if (status != DTRAIN_ERR_TIMEOUT || call == std::string_view("join") || plan.is_suspect(0) ||
        plan.is_suspect(process) || std::ranges::any_of(members, [&](int member) {
            return plan.may_be_waited_for(member) || (world->joining >> member & 1) != 0;
        }))
        return;
    const int64_t within = 4 * plan.silence + slack;
    for (const int member : members)
        if (const int64_t killed_at = world->processes[member].killed_at;
            (world->joined >> member & 1) != 0 && killed_at < world->clock &&
            world->clock - std::max(begun_, killed_at) > within)
            fail_life("process %d: %s: nobody has told that process %d is dead since %.3f s: %s",
                      process, call, member, double(world->clock - killed_at) / second,
                      last_error().c_str());
}

bool Caller::may_be_lost(int other) const {
    return other >= 0 && other < plan.workers() &&
           (plan.is_suspect(other) || (world->leavers >> other & 1) != 0 ||
            // It waits for the others at rank 0, and does not know of them.
            (plan.is_suspect(0) && (world->joined >> other & 1) == 0) ||
            world->processes[other].state == Process::State::left);
}

// Without rank 0, one that has no call in progress is not told that others have given up theirs,
// and its card keeps their memory, for which they end the connection.
bool Caller::loses_cards() const { return plan.has_cards && plan.is_suspect(0); }

void Caller::check_failed(dtrain_comm_t *comm) const {
    if (plan.is_suspect(process) || loses_cards() || members.empty()) return;
    int32_t ranks[most_processes];
    const int32_t count = dtrain_comm_failed(comm, ranks, most_processes);
    for (int32_t i = 0; i < count; i++)
        if (ranks[i] >= int32_t(members.size()) || !may_be_lost(members[size_t(ranks[i])]))
            fail_life("process %d: rank %d counts as lost, to which nothing happened", process,
                      ranks[i]);
}

// The first rank that the text names.
void Caller::check_blame(dtrain_status_t status, const char *call) {
    const std::string text = last_error();
    const size_t at = text.find("rank ");
    if (status != DTRAIN_ERR_PEER || members.empty() || plan.is_suspect(process) ||
        at == std::string::npos)
        return;
    const int rank = atoi(text.c_str() + at + 5);
    const std::vector<int> others = not_made(text), &of = others.empty() ? members : others;
    const int here = rank >= 0 && rank < int(of.size()) ? of[size_t(rank)] : nobody;
    // A member that has given up a coordinator which did not run, or one that did not come, is
    // named first, that one after it.
    static constexpr std::string_view named[] = {"coordinator rank ", "missing rank "};
    const bool waited_itself = std::ranges::any_of(named, [&](std::string_view words) {
        const size_t also = text.find(words);
        return also != std::string::npos && may_be_lost(atoi(text.c_str() + also + words.size()));
    });
    if (loses_cards() && text.find("card connection broke") != std::string::npos) return;
    // A group's texts have the numbers of the job.
    if (!may_be_lost(here) && !may_be_lost(rank) && !waited_itself)
        fail_life("process %d: %s blames one to whom nothing happened: %s", process, call,
                  text.c_str());
}

} // namespace dtrain::simulator
