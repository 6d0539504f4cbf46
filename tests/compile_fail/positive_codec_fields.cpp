// SPDX-License-Identifier: Apache-2.0
// The control of the codec_ cases: the same fields as values, and a class with a Codec of its own.
#include "pawl/codec.hpp"

class Length {
 public:
  Length() = default;
  explicit Length(int from) : value_(from) {}
  int value() const { return value_; }

 private:
  int value_ = 0;
};

template <>
struct pawl::Codec<Length> {
  static void write(JsonWriter& out, const Length& length) { out.integer(std::int64_t{length.value()}); }
  static bool read(JsonValue in, Length& out, DecodeFailure& why) {
    int value = 0;
    if (!Codec<int>::read(in, value, why)) return false;
    out = Length(value);
    return true;
  }
};

struct Note {
  std::string text;
  std::array<int, 3> marks{};
  std::optional<int> count;
  std::vector<char> ticks;
  Length length;
};

pawl::Result<std::string> store(const Note& note) { return pawl::encode(note); }
pawl::Result<Note> load(std::string_view text) { return pawl::decode<Note>(text); }
