// SPDX-License-Identifier: Apache-2.0
// A pointer means nothing in another process.
// expect: a pointer cannot be stored: hold the value itself
// expect: Note
#include "pawl/codec.hpp"

struct Note {
  int* count = nullptr;
};

pawl::Result<std::string> store(const Note& note) { return pawl::encode(note); }
