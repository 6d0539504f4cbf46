// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fingerprints of the request ids in the log, because asking the database for each new id would cost a round
/// trip. A fingerprint that is not here is certainly new.
///
///     if (requests.may_know(id)) …ask the database…
///     requests.add(id, seq);

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>

#include "store/store.hpp"

namespace pawl::postgres {

using RequestId = std::array<std::uint8_t, 16>;

/// For the owner's thread. About 35 bytes per id.
class Requests {
 public:
  bool may_know(const RequestId& id) const { return newest_.contains(fingerprint(id)); }

  void add(const RequestId& id, Seq seq) {
    newest_[fingerprint(id)] = seq;
    order_.emplace_back(seq, fingerprint(id));
  }

  /// Removes requests whose entries were removed from the log.
  void cut(Seq horizon) {
    for (; !order_.empty() && order_.front().first <= horizon; order_.pop_front()) {
      const auto found = newest_.find(order_.front().second);
      if (found != newest_.end() && found->second <= horizon) newest_.erase(found);
    }
  }

 private:
  static std::uint64_t fingerprint(const RequestId& id) {
    // Callers choose ids; combining both halves breaks up simple patterns.
    std::array<std::uint64_t, 2> halves{};
    std::memcpy(halves.data(), id.data(), id.size());
    return (halves[0] ^ (halves[1] * 0x9e3779b97f4a7c15U)) * 0xff51afd7ed558ccdU;
  }

  boost::unordered_flat_map<std::uint64_t, Seq> newest_;
  std::deque<std::pair<Seq, std::uint64_t>> order_;
};

}  // namespace pawl::postgres
