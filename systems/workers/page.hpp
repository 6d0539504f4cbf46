// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pawl::workers {

/// The system's page of the dashboard: a JavaScript module.
extern const char* const kPageScript;

}  // namespace pawl::workers
