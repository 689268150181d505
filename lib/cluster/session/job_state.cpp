// Waits for the job to be complete, and delivers reports to the observer.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/job_state.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dtrain::cluster {

Job::State::State(const JoinParams &params, Settings settings)
    : self(params.identity.member()), identity(params.identity), observer_(*params.observer),
      log_(params.log), driver_(std::move(settings), {params.secret, params.protection.control},
                                params.listen_address, log_),
      process_(getpid()) {}

Status Job::State::open(const JoinParams &params, std::optional<wire::Moved> &moved) {
    Rendezvous rendezvous;
    Status s = rendezvous.parse(params.identity, params.listen_address, params.oob, params.oob_arg);
    Fd listener = params.listener != nullptr ? std::move(*params.listener) : Fd();
    if (s == DTRAIN_OK) s = driver_.open(std::move(rendezvous), std::move(listener), now_ns());
    bool done = false;
    while (s == DTRAIN_OK && !done) {
        driver_.work(now_ns());
        s = joining(driver_.take_reports(), done, moved);
        if (s == DTRAIN_OK && !done) wait(driver_.next_deadline(), -1);
    }
    if (s == DTRAIN_OK && params.secret.empty() && self == 0) warn_of_strangers();
    if (s == DTRAIN_OK && !early_.empty()) driver_.wake();
    if (s != DTRAIN_OK) {
        std::string why = error_text();
        driver_.leave(false, now_ns());
        set_error_text(why.c_str());
        left_ = true;
    }
    return s;
}

void Job::State::warn_of_strangers() {
    std::set<std::string> hosts;
    for (const Member &member : members) hosts.insert(member.host);
    if (hosts.size() < 2 || log_ == nullptr) return;
    log_->write(DTRAIN_LOG_WARN,
                "this job spans %zu hosts without a secret: any process that reaches its ports can "
                "join it, read its messages, and end it; set option secret.file (or secret) to "
                "keep others out",
                hosts.size());
}

Status Job::State::joining(std::vector<wire::Message> reports, bool &done,
                           std::optional<wire::Moved> &moved) {
    for (wire::Message &report : reports) {
        if (done) {
            note(report);
            early_.push_back(std::move(report));
        } else if (const auto *over = std::get_if<wire::Over>(&report)) {
            return fail(over->status, "%s", over->text.c_str());
        } else if (const auto *waiting = std::get_if<wire::Waiting>(&report)) {
            if (log_ != nullptr) log_->write(DTRAIN_LOG_WARN, "%s", waiting->text.c_str());
        } else if (auto *roster = std::get_if<wire::Roster>(&report)) {
            for (wire::Peer &p : roster->members)
                members.push_back({Role(p.role), p.index, std::move(p.label), std::move(p.host),
                                   std::move(p.transports), p.cpus, std::move(p.location), p.serves,
                                   p.slot});
            done = true;
        } else if (auto *m = std::get_if<wire::Moved>(&report)) {
            moved = std::move(*m);
            done = true;
        }
    }
    return DTRAIN_OK;
}

void Job::State::work() {
    std::lock_guard deliver(delivery_);
    std::vector<wire::Message> reports;
    {
        std::lock_guard lock(mutex_);
        if (left_) return;
        driver_.work(now_ns());
        reports = std::exchange(early_, {});
        for (wire::Message &report : driver_.take_reports()) {
            note(report);
            reports.push_back(std::move(report));
        }
    }
    for (const wire::Message &report : reports) tell(report);
}

void Job::State::note(const wire::Message &report) {
    if (const auto *over = std::get_if<wire::Over>(&report)) {
        status_ = over->status;
        text_ = over->text;
    } else if (const auto *count = std::get_if<wire::Newcomers>(&report)) {
        newcomers_ = count->count;
    } else if (const auto *moved = std::get_if<wire::Moved>(&report)) {
        note_moved(*moved);
    }
    if (status_ != DTRAIN_OK)
        for (Mover *mover : movers_) eventfd_write(mover->wake.get(), 1);
    const auto *reply = std::get_if<wire::GroupReply>(&report);
    const uint32_t serial = reply != nullptr ? answered_serial(*reply, self) : 0;
    for (Waiter *waiter : waiters_) {
        if (serial != 0 && serial == waiter->serial)
            waiter->reply = *reply;
        else if (status_ == DTRAIN_OK)
            continue;
        eventfd_write(waiter->wake.get(), 1);
    }
}

void Job::State::tell(const wire::Message &report) {
    if (const auto *m = std::get_if<wire::Gone>(&report)) {
        if (m->left)
            observer_.member_left(m->member);
        else
            observer_.member_lost(m->member, m->status, m->text, m->silent);
    } else if (const auto *f = std::get_if<wire::GroupFailed>(&report)) {
        observer_.group_failed(f->group, f->status, f->text, f->guilty, f->from);
    } else if (const auto *w = std::get_if<wire::CallsWanted>(&report)) {
        observer_.calls_wanted(w->group);
    } else if (const auto *b = std::get_if<wire::RankBehind>(&report)) {
        observer_.rank_behind(b->group, b->rank, b->seq);
    } else if (const auto *r = std::get_if<wire::Relay>(&report)) {
        observer_.message(r->from, r->channel, r->bytes);
    } else if (const auto *o = std::get_if<wire::Over>(&report)) {
        observer_.job_failed(o->status, o->text);
    } else if (const auto *moved = std::get_if<wire::Moved>(&report)) {
        if (moved->status == DTRAIN_OK) observer_.job_moved(next_job(identity, *moved));
    }
}

void Job::State::leave() {
    if (getpid() != process_) return; // the connections are the parent's; here they are only closed
    std::lock_guard deliver(delivery_);
    std::lock_guard lock(mutex_);
    if (left_) return;
    left_ = true;
    driver_.leave(moved_on_, now_ns());
    if (status_ == DTRAIN_OK) {
        status_ = DTRAIN_ERR_STATE;
        text_ = "this process has left the job";
    }
}

void Job::State::give_up() {
    std::lock_guard deliver(delivery_);
    {
        std::lock_guard lock(mutex_);
        if (left_) return;
        left_ = true;
        driver_.drop_all();
        status_ = DTRAIN_ERR_NO_MEMORY;
        text_ = "no memory for the job's control messages"; // uses memory reserved for this
        for (Waiter *waiter : waiters_) eventfd_write(waiter->wake.get(), 1);
        for (Mover *mover : movers_) eventfd_write(mover->wake.get(), 1);
    }
    observer_.job_failed(status_, text_);
}

Status Job::State::post(wire::Message message) {
    std::lock_guard lock(mutex_);
    if (status_ != DTRAIN_OK) return fail(DTRAIN_ERR_STATE, "%s", text_.c_str());
    int64_t before = driver_.next_deadline();
    Status s = driver_.post(std::move(message), now_ns());
    if (driver_.has_reports() || driver_.next_deadline() < before) driver_.wake();
    return s;
}

uint64_t Job::State::id() const {
    std::lock_guard lock(mutex_);
    return driver_.membership().job;
}

Status Job::State::status() const {
    std::lock_guard lock(mutex_);
    return status_ == DTRAIN_OK ? DTRAIN_OK : fail(status_, "%s", text_.c_str());
}

Status Job::State::member_status(int32_t member) const {
    std::lock_guard lock(mutex_);
    const auto &gone = driver_.membership().gone;
    auto at = gone.find(member);
    if (at != gone.end()) return fail(DTRAIN_ERR_PEER, "%s", at->second.text.c_str());
    return status_ == DTRAIN_OK ? DTRAIN_OK : fail(status_, "%s", text_.c_str());
}

int64_t Job::State::next_deadline() const {
    std::lock_guard lock(mutex_);
    return left_ ? INT64_MAX : driver_.next_deadline();
}

int64_t Job::State::round_trip_ns() const {
    std::lock_guard lock(mutex_);
    return driver_.round_trip_ns();
}

void Job::State::wait(int64_t until, int other_fd) const {
    pollfd fds[2] = {{driver_.event_fd(), POLLIN, 0}, {other_fd, POLLIN, 0}};
    const int64_t ns = std::clamp<int64_t>(until - now_ns(), 0, 3600 * second);
    observer_.sleep({fds, size_t(other_fd >= 0 ? 2 : 1)}, ns);
}

} // namespace dtrain::cluster
