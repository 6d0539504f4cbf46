// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A run of many transitions of all kinds, and the audit of what is left of it: what was acknowledged must be
/// there once, in its place, with its application rows.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {

/// Counters and orders. The charge of every seventh order fails for good, so that its timer fires.
Machines ledger_machines();
EngineOptions ledger_options();

class Ledger {
 public:
  /// Creates the counters where they are absent.
  void begin(World& world);

  /// Adds one numbered amount to each of `count` counters, and now and then places an order; all of it under
  /// way at the same time. Returns when everything is answered. With `tolerate`, errors are no failures.
  void burst(World& world, std::size_t count, bool tolerate = false);

  /// What was acknowledged, in the order of the answers.
  const std::vector<Instance>& acknowledged() const { return acknowledged_; }
  const std::vector<Error>& errors() const { return errors_; }

 private:
  void submit(World& world, Transaction transaction);

  std::vector<Instance> acknowledged_;
  std::vector<Error> errors_;
  std::size_t submitted_ = 0;
  std::size_t answered_ = 0;
  std::int64_t number_ = 0;
  std::int64_t orders_ = 0;
};

struct LedgerAudit {
  std::size_t lost = 0;  ///< acknowledged, but not there
  std::vector<std::string> problems;
};

/// Compares the store with the first `count` acknowledgements. After a full disk numbers of the log are left
/// out; `gaps` allows that.
LedgerAudit audit_ledger(World& world, const std::vector<Instance>& acknowledged, std::size_t count,
                         bool gaps = false);

/// Lets everything that is pending happen, and looks whether all of it did: exactly once.
std::vector<std::string> settle_ledger(World& world);

}  // namespace pawl::test
