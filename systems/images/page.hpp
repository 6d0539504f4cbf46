// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pawl::images {

/// The system's page of the dashboard: a JavaScript module.
extern const char* const kPageScript;

}  // namespace pawl::images
