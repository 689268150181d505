// One rank of a test: a transport's device with a host of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "transport/device.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::test {

using Settings = std::vector<std::pair<const char *, std::string>>;

class Rank {
  public:
    Rank(const char *transport, const Settings &settings)
        : host_(options_, log_, monotonic_clock()) {
        assert_int_equal(options_.set("plugin.path", PLUGIN_FOLDER), DTRAIN_OK);
        for (const auto &[key, value] : settings)
            assert_int_equal(options_.set(key, value), DTRAIN_OK);
        log_.set_level(DTRAIN_LOG_INFO);
        log_.set_sink(&Rank::keep_line, &lines_);
        if (transport::Device::open(host_, transport, options_, device_) != DTRAIN_OK)
            fail_msg("%s: %s", transport, error_text());
    }

    const dtrain_tp_ops_t &ops() const { return device_->ops(); }
    dtrain_tp_dev_t *dev() const { return device_->dev(); }
    const transport::Device &device() const { return *device_; }
    // What the transport logged until its device was closed.
    const std::string &close() {
        device_.reset();
        return lines_;
    }

    dtrain_tp_ep_t *connect(const Rank &peer, uint64_t cookie) {
        dtrain_tp_ep_t *ep = nullptr;
        const std::vector<uint8_t> &to = peer.device().address();
        assert_int_equal(ops().reachable(dev(), to.data(), to.size()), DTRAIN_OK);
        assert_int_equal(ops().connect(dev(), to.data(), to.size(), cookie, &ep), DTRAIN_OK);
        return ep;
    }
    void send(dtrain_tp_ep_t *ep, uint64_t tag, const void *data, uint64_t len, uint64_t cookie) {
        const dtrain_tp_iov_t iov = {const_cast<void *>(data), len, nullptr};
        assert_int_equal(ops().send(ep, tag, &iov, 1, cookie), DTRAIN_OK);
    }
    void recv(uint64_t tag, uint64_t mask, void *data, uint64_t len, uint64_t cookie) {
        const dtrain_tp_iov_t iov = {data, len, nullptr};
        assert_int_equal(ops().recv(dev(), tag, mask, &iov, 1, cookie), DTRAIN_OK);
    }
    // One poll; appends what came.
    bool poll(std::vector<dtrain_tp_done_t> &done) {
        if (!device_) return false; // closed
        dtrain_tp_done_t some[8];
        const int32_t n = ops().progress(dev(), some, 8);
        assert_in_range(n, 0, 8);
        done.insert(done.end(), some, some + n);
        return n > 0;
    }

  private:
    static void keep_line(void *lines, int32_t, const char *line) {
        *static_cast<std::string *>(lines) += std::string(line) + "\n";
    }

    Options options_;
    Log log_;
    std::string lines_;
    transport::Host host_;
    std::unique_ptr<transport::Device> device_;
};

// Polls all ranks in turn until none reports anything for `idle_rounds` rounds in a row.
inline std::vector<std::vector<dtrain_tp_done_t>> drain(std::deque<Rank> &ranks,
                                                        int idle_rounds = 3) {
    std::vector<std::vector<dtrain_tp_done_t>> done(ranks.size());
    for (int idle = 0; idle < idle_rounds; idle++)
        for (size_t i = 0; i < ranks.size(); i++)
            if (ranks[i].poll(done[i])) idle = -1;
    return done;
}

inline const dtrain_tp_done_t &find(const std::vector<dtrain_tp_done_t> &done, uint32_t kind,
                                    uint64_t cookie) {
    for (const dtrain_tp_done_t &d : done)
        if (d.kind == kind && d.cookie == cookie) return d;
    fail_msg("no completion of kind %u with cookie %llu", kind,
             static_cast<unsigned long long>(cookie));
    return done.front();
}

inline size_t count(const std::vector<dtrain_tp_done_t> &done, uint32_t kind) {
    size_t n = 0;
    for (const dtrain_tp_done_t &d : done) n += d.kind == kind;
    return n;
}

} // namespace dtrain::test
