// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The specification that a shim gets in a memory file. Not thread-safe.

#include <sys/resource.h>

#include <cstddef>

namespace pawl::workers::shim {

struct Spec {
  const char* program = nullptr;
  const char* directory = "/";
  char** arguments = nullptr;    ///< terminated by a null pointer
  char** environment = nullptr;  ///< likewise; the first entry is reserved for the mark
  std::size_t log_bytes = 0;
  std::size_t line_bytes = 0;
  rlim_t open_files = 0;  ///< 0: unchanged
  rlim_t memory = 0;

  void* mapping = nullptr;
  std::size_t mapped = 0;
};

/// 0, or an errno. Everything in `spec` points into one mapping.
int read_spec(int file, Spec& spec);

/// Unmaps the specification and the secrets in it.
void drop_spec(Spec& spec);

}  // namespace pawl::workers::shim
