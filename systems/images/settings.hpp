// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "images/image_services.hpp"
#include "pawl/system.hpp"

namespace pawl::images {

/// What the user chose where several are possible.
struct ImagesChoice {
  std::optional<BackendKind> backend{};  ///< none: the default, `dir`
  std::string secret_file{};
  PolicyPreset policy = PolicyPreset::strict;
  // Those of the rules that are set by themselves, whatever the policy says.
  std::optional<SetIdPolicy> set_id{};
  std::optional<AbsoluteLinkPolicy> absolute_links{};
  std::optional<DevicePolicy> devices{};
  std::optional<CasePolicy> case_collisions{};
};

/// The keys below `images` in the configuration; they write into these two, which must live as long.
std::vector<Setting> image_settings(ImagesOptions& options, ImagesChoice& choice);

/// The further pools and the default one have names and directories of their own. Error: `config_invalid`,
/// which says what would be right.
Result<void> check_pools(const ImagesOptions& options);

/// The rules of archives: those of the policy, and of the settings that are given by themselves.
void choose_policy(ImagesOptions& options, const ImagesChoice& choice);

/// Reads the credentials where the configuration says, else from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
/// AWS_SESSION_TOKEN. Error: `config_invalid`.
Result<void> read_credentials(S3Options& s3, const ImagesChoice& choice);

}  // namespace pawl::images
