// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stop_token>

#include "pawl/assert.hpp"
#include "support/descriptor.hpp"

namespace pawl::workers {

/// A stop token as a descriptor for poll: readable once stop was requested. Not thread-safe; the stop may
/// come from any thread.
class StopEvent {
 public:
  explicit StopEvent(const std::stop_token& stop)
      : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), callback_(stop, Signal{event_.get()}) {
    PAWL_ASSERT(static_cast<bool>(event_), "there is a descriptor for a stop", errno);
  }

  int descriptor() const { return event_.get(); }

 private:
  struct Signal {
    int event;
    void operator()() const {
      const std::uint64_t one = 1;
      PAWL_ASSERT(write(event, &one, sizeof one) == sizeof one, "an event counts to one", errno);
    }
  };

  systems::Descriptor event_;
  std::stop_callback<Signal> callback_;
};

}  // namespace pawl::workers
