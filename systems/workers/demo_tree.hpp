// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pawl::workers {

/// A parent with two children, a process, and a worker that fails and recovers: something to look at.
extern const char* const kDemoTree;

}  // namespace pawl::workers
