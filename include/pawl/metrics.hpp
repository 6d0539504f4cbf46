// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Metrics as Prometheus reads them.
///
///     pawl::MetricsText out;
///     out.counter("shop_orders_total", "Orders placed.").sample(42);
///     out.gauge("shop_carts", "Open carts by country.");
///     out.sample({{"country", "de"}}, 7).sample({{"country", "fr"}}, 3);
///     out.text();
///
/// Keep labels to values whose number is bounded: states and routes, never keys of instances.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {

/// Writes the text format, one family after the other. Not thread-safe.
class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// Begins a family; samples that follow belong to it.
  MetricsText& counter(std::string_view name, std::string_view help);
  MetricsText& gauge(std::string_view name, std::string_view help);
  MetricsText& histogram(std::string_view name, std::string_view help);

  MetricsText& sample(double value) { return sample({}, value); }
  MetricsText& sample(const Labels& labels, double value);

  /// A histogram's samples: how many fell into each bucket; the last count is of those above every bound.
  MetricsText& buckets(const Labels& labels, std::span<const double> bounds,
                       std::span<const std::uint64_t> counts, double sum);

  const std::string& text() const { return text_; }

 private:
  MetricsText& begin(std::string_view name, std::string_view type, std::string_view help);
  void line(std::string_view suffix, const Labels& labels, double value);

  std::string family_;
  std::string text_;
};

}  // namespace pawl
