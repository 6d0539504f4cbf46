// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Requests of every kind, with the answers that the OpenAPI document promises.

#include <string>
#include <string_view>
#include <vector>

namespace pawl::test {

/// One request whose answer must have this status.
struct Case {
  std::string operation;
  int status;
  std::string method;
  std::string target;
  std::string body{};
  std::string headers{};
  bool with_token = true;  // of an administrator
};

inline const std::string kLoginPassword = "correct horse battery";
std::string login_body(std::string_view password);

std::vector<Case> reading_cases(const std::string& old_cursor);
std::vector<Case> writing_cases();
/// What must be there before: a run by its ULID, a lease, and the run "held", which is closing.
std::vector<Case> flow_cases(const std::string& ulid, const std::string& lease);
/// What must be there before: the image "known", of which nothing but its row is there.
std::vector<Case> image_cases();
std::vector<Case> worker_cases();
/// `browser` are the headers of a login, `id` names a token that may be revoked, `code` is of a login link.
std::vector<Case> auth_cases(const std::string& browser, const std::string& id, const std::string& code);

}  // namespace pawl::test
