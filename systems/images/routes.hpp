// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "images/image_services.hpp"
#include "pawl/engine.hpp"
#include "pawl/flows.hpp"
#include "pawl/http.hpp"

namespace pawl::images {

/// What the routes serve; all of it lives as long as they do.
struct ImagesView {
  ImageServices& services;
  Flows& flows;
  Engine& engine;
};

/// /v1/images, /v1/image-pool, /v1/image-garbage and /v1/image-doctor.
std::vector<http::Route> image_routes(const ImagesView& view);

}  // namespace pawl::images
