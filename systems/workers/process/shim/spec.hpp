// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a shim is to run, as it was handed over in a file in memory. Not thread-safe.

#include <sys/resource.h>

#include <cstddef>

namespace pawl::workers::shim {

struct Spec {
  const char* program = nullptr;
  const char* directory = "/";
  char** arguments = nullptr;    ///< ended by a null pointer, as the kernel wants them
  char** environment = nullptr;  ///< likewise; its first entry is left free for the mark
  std::size_t log_bytes = 0;
  std::size_t line_bytes = 0;
  rlim_t open_files = 0;  ///< 0: as it is
  rlim_t memory = 0;

  void* mapping = nullptr;
  std::size_t mapped = 0;
};

/// 0, or an errno. Everything in `spec` points into one mapping.
int read_spec(int file, Spec& spec);

/// Gives the mapping back, and with it the secrets in it.
void drop_spec(Spec& spec);

}  // namespace pawl::workers::shim
