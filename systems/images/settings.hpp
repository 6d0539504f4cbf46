// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "images/workshop.hpp"
#include "pawl/system.hpp"

namespace pawl::images {

/// What the user chose where several are possible.
struct ImagesChoice {
  std::optional<BackendKind> backend{};  ///< none: the default, `dir`
  std::string secret_file{};
};

/// The keys below `images` in the configuration; they write into these two, which must live as long.
std::vector<Setting> image_settings(ImagesOptions& options, ImagesChoice& choice);

/// Reads the credentials where the configuration says, else from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
/// AWS_SESSION_TOKEN. Error: `config_invalid`.
Result<void> read_credentials(S3Options& s3, const ImagesChoice& choice);

}  // namespace pawl::images
