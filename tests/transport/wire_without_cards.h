// What the wires of tests have in common: no device to open, no address, and no memory that a card
// writes to or reads from.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rdm/device.h"

namespace dtrain::test {

class WireWithoutCards : public rdm::Wire {
  public:
    rdm::WireAttr &attributes() { return attr_; }

    dtrain_status_t open(const char *) override { return DTRAIN_OK; }
    const rdm::WireAttr &attr() const override { return attr_; }
    size_t address(uint8_t *) override { return 0; }
    std::string route(const uint8_t *, size_t) override { return ""; }
    int event_fd() const override { return -1; }
    dtrain_status_t reg(const dtrain_mem_params_t &, dtrain_tp_mr_t **) override {
        return DTRAIN_ERR_UNSUPPORTED;
    }
    void dereg(dtrain_tp_mr_t *) override {}
    dtrain_status_t rkey(dtrain_tp_mr_t *, void *, size_t) override {
        return DTRAIN_ERR_UNSUPPORTED;
    }
    rdm::RegistrationCounts registrations() const override { return {}; }
    rdm::Sent put(rdm::Link *, rdm::Operation *, uint64_t, const void *) override {
        return rdm::Sent::broken;
    }
    rdm::Sent get(rdm::Link *, rdm::Operation *, uint64_t, const void *) override {
        return rdm::Sent::broken;
    }

  protected:
    rdm::WireAttr attr_;
};

} // namespace dtrain::test
