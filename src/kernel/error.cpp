// SPDX-License-Identifier: Apache-2.0
#include "pawl/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "pawl/assert.hpp"

namespace pawl {
namespace {

constexpr auto kCodes = std::to_array<CodeInfo>({
#define PAWL_CODE_INFO(number, name, summary) {Code::name, #name, summary},
    PAWL_ERROR_CODES(PAWL_CODE_INFO)
#undef PAWL_CODE_INFO
});
static_assert(std::ranges::adjacent_find(kCodes, std::ranges::greater_equal{}, &CodeInfo::code) ==
                  kCodes.end(),
              "error codes must ascend and be unique");

}  // namespace

std::span<const CodeInfo> all_codes() noexcept { return kCodes; }

const CodeInfo& info(Code code) noexcept {
  const auto* found = std::ranges::lower_bound(kCodes, code, {}, &CodeInfo::code);
  PAWL_ASSERT(found != kCodes.end() && found->code == code, "an error code is in the registry");
  return *found;
}

std::string_view name(Code code) noexcept { return info(code).name; }

std::string_view Error::field(std::string_view key) const noexcept {
  const auto found = std::ranges::find(fields_, key, &Field::key);
  return found == fields_.end() ? std::string_view{} : std::string_view{found->value};
}

Error& Error::with(std::string key, std::string value) & {
  fields_.push_back({std::move(key), std::move(value)});
  return *this;
}

Error&& Error::with(std::string key, std::string value) && {
  fields_.push_back({std::move(key), std::move(value)});
  return std::move(*this);
}

Error&& Error::while_(std::string_view doing) && {
  message_ = fmt::format("{}: {}", doing, message_);
  return std::move(*this);
}

std::string Error::to_string() const {
  auto text = fmt::format("PAWL-{} {}: {}", static_cast<int>(code_), name(code_), message_);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? " (" : ", ", fields_[i].key, fields_[i].value);
  }
  if (!fields_.empty()) text += ")";
  return text;
}

}  // namespace pawl

std::bad_expected_access<pawl::Error>::bad_expected_access(pawl::Error error)
    : error_(std::move(error)), text_(error_.to_string()) {}
