// SPDX-License-Identifier: Apache-2.0
// The codec sees public fields only; a class that hides them brings a Codec of its own.
// expect: this type is not a plain struct: specialise pawl::Codec for it
// expect: Note
#include "pawl/codec.hpp"

class Note {
 public:
  int length() const { return length_; }

 private:
  int length_ = 0;
};

pawl::Result<std::string> store(const Note& note) { return pawl::encode(note); }
