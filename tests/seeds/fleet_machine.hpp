// SPDX-License-Identifier: Apache-2.0
#pragma once

/// fleet: the role of one cloud instance among the instances of its agent.

#include <string>

#include "pawl/verify.hpp"

namespace seeds::fleet {

enum class Role { replica, primary, zombie, terminated };

struct Heartbeat {};
struct Promote {};
struct PromotionFailed {
  std::string reason = "failed_promotion";
};
struct Demote {
  std::string reason = "replaced";
};
struct TerminationConfirmed {};

struct InstanceData {
  int heartbeats = 0;
  std::string zombie_reason;
};

/// An instance joins as REPLICA; registering an agent's first one starts and promotes it in one commit. A
/// primary always becomes ZOMBIE, fenced and not serving, before it ends, and TERMINATED is only written when
/// the cloud has confirmed it: the direct edge of the drawing is the sum of these two steps.
inline constexpr auto instance =
    pawl::machine<Role, InstanceData>("fleet_instance")
        .initial(Role::replica)
        .stay<Heartbeat>(Role::primary, [](InstanceData& data) { ++data.heartbeats; })
        .on<Demote>(Role::primary, Role::zombie,
                    [](InstanceData& data, const Demote& demote) { data.zombie_reason = demote.reason; })
        .on<Promote>(Role::replica, Role::primary)
        .on<PromotionFailed>(
            Role::replica, Role::zombie,
            [](InstanceData& data, const PromotionFailed& failed) { data.zombie_reason = failed.reason; })
        .on<TerminationConfirmed>(pawl::from(Role::replica, Role::zombie), Role::terminated)
        .terminal(Role::terminated)
        .named(Role::replica, "REPLICA")
        .named(Role::primary, "PRIMARY")
        .named(Role::zombie, "ZOMBIE")
        .named(Role::terminated, "TERMINATED");
static_assert(pawl::verified<instance>);

}  // namespace seeds::fleet
