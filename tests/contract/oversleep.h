// What a busy machine adds to every bound: by how much a process overslept, and how long the thread
// that answers heartbeats had to wait for a processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

// Of all threads of this process, by the kernel's count: the longest time that one of them, in its
// life, has waited for a processor though it could run. A call needs its context's threads, too,
// and whoever holds a lock may be among them.
inline int64_t longest_wait_of_a_thread_ns() {
    int64_t longest_ns = 0;
    std::error_code gone;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
        int64_t ran_ns = 0, waited_ns = 0;
        std::ifstream(task.path() / "schedstat") >> ran_ns >> waited_ns; // 0 if it has ended
        longest_ns = std::max(longest_ns, waited_ns);
    }
    return longest_ns;
}

// Notes the longest while it lives. held_up_ns: of any second, how much of it the thread waited
// though it could run, by the kernel's count. A thread that only sleeps is run at once when it
// wakes; one that works may lose its processor in the middle, to every other group of tasks in
// turn.
class Oversleep {
  public:
    explicit Oversleep(std::atomic<int64_t> &most_ns, std::atomic<int64_t> *held_up_ns = nullptr)
        : most_ns_(most_ns), held_up_ns_(held_up_ns), thread_([this] { run(); }) {}
    ~Oversleep() {
        over_ = true;
        thread_.join();
    }
    Oversleep(const Oversleep &) = delete;
    Oversleep &operator=(const Oversleep &) = delete;

  private:
    using Clock = std::chrono::steady_clock;

    void run() {
        constexpr std::chrono::milliseconds nap{2};
        for (uint32_t lap = 0; !over_; lap++) {
            const Clock::time_point begin = Clock::now();
            std::this_thread::sleep_for(nap);
            const std::chrono::nanoseconds late = Clock::now() - begin - nap;
            most_ns_ = std::max<int64_t>(most_ns_, late.count());
            if (held_up_ns_ != nullptr && lap % 10 == 0) look_at_control();
        }
    }
    void look_at_control() {
        if (control_.empty()) find_control();
        std::ifstream file(control_ + "/schedstat");
        int64_t ran_ns = 0, waited_ns = 0;
        if (!(file >> ran_ns >> waited_ns)) { // its context is gone
            control_.clear();
            seen_.clear();
            return;
        }
        const Clock::time_point now = Clock::now();
        seen_.push_back({now, waited_ns});
        while (now - seen_.front().when > std::chrono::seconds(1)) seen_.pop_front();
        *held_up_ns_ = std::max<int64_t>(*held_up_ns_, waited_ns - seen_.front().waited_ns);
    }
    void find_control() {
        for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
            std::string name;
            std::ifstream(task.path() / "comm") >> name;
            if (name == "dtrain-control") control_ = task.path().string();
        }
    }

    struct Sample {
        Clock::time_point when;
        int64_t waited_ns;
    };
    std::atomic<int64_t> &most_ns_;
    std::atomic<int64_t> *const held_up_ns_;
    std::string control_; // its folder
    std::deque<Sample> seen_;
    std::atomic<bool> over_{false};
    std::thread thread_; // the last one: it uses the others
};
