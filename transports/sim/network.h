// An in-process network in virtual time, shared by all devices that name it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/fd.h"
#include "common/host.h"
#include "common/match.h"
#include "settings.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace dtrain::tp::sim {

struct Device;
struct Endpoint;
class Network;

inline constexpr uint64_t max_message = uint64_t{1} << 40;

// An operation in progress. A message's bytes stay with the sender until a receive takes them,
// unless it is eager: then they were copied and the sender has its completion already.
struct Transfer {
    uint32_t kind = 0; // kind of its completion: DTRAIN_TP_SEND, _PUT, _GET or _CONNECT
    bool eager = false;
    int64_t due = 0;    // virtual time of arrival
    uint64_t order = 0; // among transfers due at the same time
    Device *source = nullptr, *target = nullptr;
    Endpoint *endpoint = nullptr; // nullptr: it was disconnected meanwhile
    uint64_t tag = 0, length = 0, cookie = 0;
    uint64_t remote_addr = 0, region = 0, imm = 0; // for put and get
    IovCursor iov;
    std::unique_ptr<uint8_t[]> data; // eager
    Link<Transfer> link;

    dtrain_tp_done_t done(dtrain_status_t status) const {
        return {cookie, status == DTRAIN_OK ? length : 0, tag, 0, status, kind, 0};
    }
};
using Transfers = List<Transfer, &Transfer::link>;

struct Endpoint {
    struct Lane { // keeps the order within one tag
        int64_t last_due = 0;
        uint32_t flying = 0;
    };
    Device *source, *target; // target is nullptr once the peer is lost
    uint64_t cookie;
    uint64_t random; // state of its own sequence, so that threads do not affect each other's
    std::map<uint64_t, Lane> lanes = {};
    Link<Endpoint> link = {};
};

struct Registration {
    Device *device;
    uint64_t id;
    uintptr_t address;
    uint64_t length;
};

struct Device {
    Device(Network &n, const dtrain_tp_host_t *h, uint32_t number, const Settings &settings)
        : network(n), host(h), id(number), matcher(settings.buffer), most_eager(settings.eager) {}

    Network &network;
    Host host; // not valid after close()
    const uint32_t id;
    Matcher matcher;
    Completions completions;
    Transfers held;      // arrived, but there was no room to keep them
    Transfers announced; // kept without their bytes
    List<Endpoint, &Endpoint::link> endpoints;
    uint64_t most_eager;   // bytes; longer messages wait for their receive
    uint64_t incoming = 0; // cost of eager messages on their way to it
    uint64_t sequence = 0; // number of its last transfer
    uint32_t flying = 0;   // transfers in progress from it or to it
    int64_t port_free = 0; // when its last bytes have left
    bool quiet = true;     // it has polled without result since its last action or event
    bool armed = false;
    bool closed = false; // it stays only until no transfer from it or to it is in progress
    Fd event_fd;
};

struct Window {
    uint64_t id, bytes;
    uint32_t members;
    const Device *creator;
    std::unique_ptr<void, void (*)(void *)> memory;
    std::vector<Device *> mapped = {}; // one entry per mapping
};

// Time advances when every device is quiet, so that a program's computing between two polls takes
// no time. A program that polls all devices in turn in a single thread behaves identically in every
// run. With threads, one that does not poll for a while must not stop the others forever: after
// `patience` polls without result they continue without it.
//
// All functions need the mutex unless they say otherwise. join() and launch() may throw
// std::bad_alloc; they have then changed nothing.
class Network {
  public:
    // Opens a device on the network that settings names; the first device creates it. nullptr: its
    // settings differ from the network's. No mutex.
    static Device *join(const Settings &settings, const dtrain_tp_host_t *host);
    // The last device to leave ends the network. No mutex.
    static void leave(Device *device);

    std::mutex &mutex() { return mutex_; }
    const Settings &settings() const { return settings_; }
    uint64_t nonce() const { return nonce_; } // distinguishes this network from all others

    Device *find(uint32_t id);
    // Starts a transfer of `bytes`; takes ownership of it.
    void launch(std::unique_ptr<Transfer> transfer, uint64_t bytes);
    // Delivers what has arrived by now. If the device then has nothing to report and all devices
    // are quiet, time advances to the next arrival.
    void poll(Device &device);
    // Time stands still and waits for another device to poll: the caller should not fall asleep.
    bool held_up() const { return !flying_.empty(); }
    // Matches receives and held messages of a device, after either of them changed.
    void settle(Device &device);
    void deliver(Transfer *transfer, Receive *receive); // frees both
    void complete(Device &device, const dtrain_tp_done_t &done);
    void finish(Transfer *transfer, dtrain_status_t status); // completes and frees it
    void disconnect(Endpoint *endpoint);
    void withdraw(const Device &source, uint64_t cookie); // sends, puts and gets
    void wake(Device &device);

    std::map<uint64_t, Registration *> regions;
    std::map<uint64_t, Window *> windows; // windows that their creator still maps
    uint64_t next_id = 1;                 // for regions and windows
    // Number of devices; read without the mutex by window_ring().
    std::atomic<uint32_t> armed = 0;

  private:
    struct Earlier {
        bool operator()(const Transfer *a, const Transfer *b) const {
            return a->due != b->due ? a->due < b->due : a->order < b->order;
        }
    };
    Network(const Settings &settings, const Host &host);
    int64_t arrival(Endpoint &endpoint, uint64_t bytes);
    void run();
    bool all_quiet() const;
    void ground(Transfer *transfer); // removes it from the transfers in progress
    void land(Transfer *transfer);
    void put_or_get(Transfer *transfer);
    bool keep(Transfer *transfer);
    template <class Condition> void drop(Condition &&condition, dtrain_status_t status);
    void bury(Device *device);
    void bury_closed();

    std::mutex mutex_;
    const Settings settings_;
    uint64_t nonce_ = 0;
    int64_t now_ = 0;
    uint32_t vain_polls_ = 0; // since time last advanced
    uint64_t messages_ = 0, bytes_ = 0;
    uint32_t next_device_ = 0;
    std::vector<std::unique_ptr<Device>> devices_;
    std::set<Transfer *, Earlier> flying_;
    Network *next_ = nullptr;
    static constexpr uint32_t patience = 32;
    static std::mutex registry_mutex_;
    static Network *registry_;
};

} // namespace dtrain::tp::sim
