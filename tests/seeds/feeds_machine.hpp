// SPDX-License-Identifier: Apache-2.0
#pragma once

/// feeds: a macro machine coordinates providers, each of which is a machine of its own.

#include <string>

#include "pawl/time.hpp"
#include "pawl/verify.hpp"

namespace seeds::feeds {

// ---- the macro machine ------------------------------------------------------------------------------------

enum class Macro { bootstrapping, orchestrating, stabilizing, draining };

struct ProviderStarted {};
struct ProviderCompleted {
  int unfinished = 0;  // how many enabled providers of the plan are still at work
};
struct RestartProviders {};
struct Shutdown {};

struct MacroData {
  int epochs = 0;  // how often providers were set to work
};

/// A drained run is over; the next start of the service is its next generation, in BOOTSTRAPPING.
inline constexpr auto macro =
    pawl::machine<Macro, MacroData>("feeds_macro")
        .initial(Macro::bootstrapping)
        .on<ProviderStarted>(Macro::bootstrapping, Macro::orchestrating,
                             [](MacroData& data) { ++data.epochs; })
        .on<Shutdown>(Macro::bootstrapping, Macro::draining)
        .on<ProviderCompleted>(Macro::orchestrating, Macro::stabilizing,
                               pawl::when([](const MacroData&, const ProviderCompleted& completed) {
                                 return completed.unfinished == 0;
                               }))
        .on<Shutdown>(Macro::orchestrating, Macro::draining)
        .on<RestartProviders>(Macro::stabilizing, Macro::orchestrating,
                              [](MacroData& data) { ++data.epochs; })
        .on<Shutdown>(Macro::stabilizing, Macro::draining)
        .terminal(Macro::draining)
        .generations()
        .named(Macro::bootstrapping, "BOOTSTRAPPING")
        .named(Macro::orchestrating, "ORCHESTRATING")
        .named(Macro::stabilizing, "STABILIZING")
        .named(Macro::draining, "DRAINING")
        .named<ProviderStarted>("PROVIDER_STARTED")
        .named<ProviderCompleted>("PROVIDER_COMPLETED");
static_assert(pawl::verified<macro>);

// ---- the provider's machine -------------------------------------------------------------------------------

enum class Provider { idle, acquiring, running, waiting_quota, waiting_backoff, paused, terminated };
enum class Outcome { none, completed, stopped, failed };

struct Start {};
struct QuotaGranted {
  int permits = 1;
};
struct QuotaRevoked {
  int permits = 1;
};
struct RateLimited {
  pawl::Duration wait = std::chrono::seconds(5);
};
struct Retry {};
struct Pause {};
struct Resume {};
struct Stop {
  Outcome outcome = Outcome::stopped;
};

struct ProviderData {
  int permits_held = 0;
  pawl::Duration backoff{};
  Outcome outcome = Outcome::none;
};

inline void release(ProviderData& data) { data.permits_held = 0; }
inline void finish(ProviderData& data, const Stop& stop) {
  data.permits_held = 0;
  data.outcome = stop.outcome;
}

/// Permits are released wherever the way back leads through ACQUIRING; a grant of none is no grant. What was
/// at work or waiting for permits when the service stopped asks for permits again.
inline constexpr auto provider =
    pawl::machine<Provider, ProviderData>("feeds_provider")
        .initial(Provider::idle)
        .on<Start>(Provider::idle, Provider::acquiring)
        .on<QuotaGranted>(
            Provider::acquiring, Provider::running,
            pawl::when([](const ProviderData&, const QuotaGranted& grant) { return grant.permits > 0; }),
            [](ProviderData& data, const QuotaGranted& grant) { data.permits_held += grant.permits; })
        .on<Pause>(Provider::acquiring, Provider::paused, pawl::call<&release>)
        .on<Stop>(Provider::acquiring, Provider::terminated, pawl::call<&finish>)
        .on<QuotaRevoked>(
            Provider::running, Provider::waiting_quota,
            [](ProviderData& data, const QuotaRevoked& revoked) { data.permits_held -= revoked.permits; })
        .on<RateLimited>(Provider::running, Provider::waiting_backoff,
                         [](ProviderData& data, const RateLimited& limited) {
                           data.permits_held = 0;
                           data.backoff = limited.wait;
                         })
        .on<Pause>(Provider::running, Provider::paused, pawl::call<&release>)
        .on<Stop>(Provider::running, Provider::terminated, pawl::call<&finish>)
        .on<Retry>(pawl::from(Provider::waiting_quota, Provider::waiting_backoff), Provider::acquiring)
        .on<Stop>(pawl::from(Provider::waiting_quota, Provider::waiting_backoff), Provider::terminated,
                  pawl::call<&finish>)
        .on<Resume>(Provider::paused, Provider::acquiring)
        .on<Stop>(Provider::paused, Provider::terminated, pawl::call<&finish>)
        .terminal(Provider::terminated)
        .recover(Provider::running, Provider::acquiring)
        .recover(Provider::waiting_quota, Provider::acquiring)
        .generations()
        .named(Provider::idle, "IDLE")
        .named(Provider::acquiring, "ACQUIRING")
        .named(Provider::running, "RUNNING")
        .named(Provider::waiting_quota, "WAITING_QUOTA")
        .named(Provider::waiting_backoff, "WAITING_BACKOFF")
        .named(Provider::paused, "PAUSED")
        .named(Provider::terminated, "TERMINATED")
        .named<QuotaGranted>("QUOTA_GRANTED")
        .named<QuotaRevoked>("QUOTA_REVOKED")
        .named<RateLimited>("RATE_LIMITED");
static_assert(pawl::verified<provider>);

}  // namespace seeds::feeds
