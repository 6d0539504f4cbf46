// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/records.hpp"

namespace pawl {
namespace {

template <class T>
void write_records(JsonWriter& out, std::string_view name, const std::vector<T>& records) {
  if (records.empty()) return;
  out.field(name);
  Codec<std::vector<T>>::write(out, records);
}

template <class T>
bool read_part(JsonValue in, std::string_view name, T& part, DecodeFailure& why) {
  const auto member = in.find(name);
  return !member || Codec<T>::read(*member, part, why) || why.in_field(name);
}

}  // namespace

void Codec<Extras>::write(JsonWriter& out, const Extras& extras) {
  out.begin_object();
  write_records(out, "timers", extras.timers);
  write_records(out, "work", extras.work);
  write_records(out, "outbox", extras.outbox);
  if (extras.queue) {
    out.field("queue");
    Codec<QueueRecord>::write(out, *extras.queue);
  }
  out.end_object();
}

bool Codec<Extras>::read(JsonValue in, Extras& out, DecodeFailure& why) {
  if (in.kind() != JsonKind::object) return why.refuse("object", in);
  return read_part(in, "timers", out.timers, why) && read_part(in, "work", out.work, why) &&
         read_part(in, "outbox", out.outbox, why) && read_part(in, "queue", out.queue, why);
}

}  // namespace pawl
