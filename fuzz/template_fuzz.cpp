// SPDX-License-Identifier: Apache-2.0
// Templates: any bytes are either rendered, or refused with a message that says where. What stands before the
// first expression is never changed, and values are never read as templates.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"
#include "pawl/worker_spec.hpp"

namespace {

const pawl::Variables kVariables{
    .user = {{"IP", {"\"10.0.0.7\""}},
             {"PORT", {"1883"}},
             {"T", {"\"{{ .T }}{{\""}},
             {"bad", {"not JSON"}},
             {"plc", {R"({"host":"h","port":502,"a":{"b":[1,null]}})"}}},
    .global = {{"site", {"\"north\""}}},
};
const pawl::InternalVariables kInternal{.id = "w", .parent_id = "root"};

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void check_refusal(std::string_view input, const pawl::Error& error) {
  using enum pawl::Code;
  const auto code = error.code();
  PAWL_ASSERT(
      code == template_invalid || code == variable_missing || code == spec_invalid || code == too_large,
      "a refusal has a reason of its own", error.message());
  PAWL_ASSERT(pawl::is_utf8(error.to_string()), "a message can be shown and sent");
  PAWL_ASSERT(code != variable_missing || !error.field("key").empty(), "what is missing has a name");
  const auto line = number(error.field("line"));
  const auto column = number(error.field("column"));
  PAWL_ASSERT(line >= 1 && column >= 1, "a refusal says where", error.message());
  for (std::size_t i = 1; i < line; ++i) {
    PAWL_ASSERT(input.contains('\n'), "the line is there", error.message());
    input.remove_prefix(input.find('\n') + 1);
  }
  PAWL_ASSERT(column <= input.substr(0, input.find('\n')).size(), "the column is there", error.message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto result = pawl::render(input, kVariables, kInternal);
  if (!result) {
    check_refusal(input, result.error());
    return 0;
  }
  const auto plain = input.substr(0, input.find("{{"));
  PAWL_ASSERT(result->starts_with(plain), "what stands before the first expression is left as it is");
  PAWL_ASSERT(plain.size() < input.size() || *result == input, "without expressions nothing changes");

  // The text as a value stands as it is, whatever is in it.
  const auto value = pawl::encode(std::string(input));
  if (!value) return 0;
  const pawl::Variables own{.user = {{"x", {*value}}}};
  PAWL_ASSERT(pawl::render("{{ .x }}", own, kInternal) == std::string(input), "a value is not a template");
  return 0;
}
