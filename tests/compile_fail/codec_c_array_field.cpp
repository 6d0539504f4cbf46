// SPDX-License-Identifier: Apache-2.0
// A C array is not a value.
// expect: a C array cannot be stored: use std::array or std::vector
// expect: Note
#include "pawl/codec.hpp"

struct Note {
  int marks[3];
};

pawl::Result<std::string> store(const Note& note) { return pawl::encode(note); }
