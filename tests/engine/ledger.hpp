// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A run with many transitions of all kinds, and an audit of the store: every acknowledged transition must be
/// there exactly once, in its place, with its application rows.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {

/// Counters and orders. The charge of every seventh order fails permanently, so its timer fires.
Machines ledger_machines();
EngineOptions ledger_options();

class Ledger {
 public:
  /// Creates the missing counters.
  void begin(World& world);

  /// Adds one numbered amount to each of `count` counters and sometimes places an order, all concurrently.
  /// Returns when everything is answered. With `tolerate`, errors do not fail the test.
  void burst(World& world, std::size_t count, bool tolerate = false);

  /// The acknowledged transitions, in the order of the answers.
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

/// Compares the store with the first `count` acknowledgements. `gaps` allows missing numbers in the log, as
/// after a full disk.
LedgerAudit audit_ledger(World& world, const std::vector<Instance>& acknowledged, std::size_t count,
                         bool gaps = false);

/// Runs until nothing is pending and checks that everything has happened exactly once.
std::vector<std::string> settle_ledger(World& world);

}  // namespace pawl::test
