// SPDX-License-Identifier: Apache-2.0
// A view would dangle: the text it was read from is gone.
// expect: a string_view would dangle after decoding: use std::string
// expect: Note
#include "pawl/codec.hpp"

struct Note {
  std::string_view text;
};

pawl::Result<std::string> store(const Note& note) { return pawl::encode(note); }
