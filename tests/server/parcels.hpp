// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A system with flows, for the tests of their routes.

#include <condition_variable>
#include <mutex>
#include <string>

#include "pawl/flows.hpp"
#include "pawl/system.hpp"

namespace pawl::test {

struct Parcel {
  int grams = 0;
  std::string to;
};
struct Delivery {
  int weighed = 0;
  std::string signed_by;
};

/// `parcel`: weigh, carry (elsewhere, with a long lease), sweep at the end. A negative weight aborts; the run
/// "held" stays in its last step until the engine stops. `letter` has a short lease.
class Parcels final : public System {
 public:
  std::string name() const override { return "parcels"; }

  void add_flows(Flows& flows) override {
    flows.add(flow<Parcel, Delivery>("parcel")
                  .start("weigh",
                         [](Step&, const Parcel& parcel, Delivery& delivery) {
                           if (parcel.grams < 0) return Outcome::abort("no weight");
                           delivery.weighed = parcel.grams;
                           return Outcome::done();
                         })
                  .undo([](Step&, const Parcel&, Delivery&) { return Outcome::done(); })
                  .remote("carry", {.retry = quick()})
                  .finally("sweep",
                           [](Step& step, const Parcel&, Delivery&) {
                             if (step.id() == "held") hold(step);
                             return Outcome::done();
                           })
                  .end());
    flows.add(flow<Parcel, Delivery>("letter")
                  .remote("post", {.retry = quick(), .lease = std::chrono::milliseconds(50)})
                  .end());
  }
  std::map<std::string, std::uint32_t> pools() const override { return {{"van", 1}}; }

 private:
  static RetryPolicy quick() {
    return {.retries = 3, .first = std::chrono::milliseconds(1), .jitter = Jitter::none};
  }
  static void hold(Step& step) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait(lock, step.stop(), [] { return false; });
  }
};

}  // namespace pawl::test
