// SPDX-License-Identifier: Apache-2.0
// std::vector<bool> has no elements that could be read into.
// expect: std::vector<bool> has no real elements: use std::vector<char> or an enum
// expect: Note
#include "pawl/codec.hpp"

struct Note {
  std::vector<bool> ticks;
};

pawl::Result<std::string> store(const Note& note) { return pawl::encode(note); }
