// SPDX-License-Identifier: Apache-2.0
// Plain structs become JSON and come back; what does not fit is refused with the place where it stands.
#include <iostream>

#include "pawl/codec.hpp"

enum class Size { small, large };
struct Item {
  std::string name;
  pawl::Required<int> quantity;
};
struct Order {
  std::string id;
  std::vector<Item> items;
  Size box = Size::small;
  std::optional<std::string> note;
  pawl::Duration patience = std::chrono::minutes(20);
};

int main() {
  const Order order{.id = "o-1", .items = {{.name = "nut", .quantity = 3}}, .box = Size::large};
  const auto text = pawl::encode(order).value();
  std::cout << text << '\n';
  std::cout << pawl::decode<Order>(text).value().items[0].name << '\n';

  // Absent fields keep their defaults, unknown ones are ignored.
  std::cout << pawl::encode(pawl::decode<Order>(R"({"id": "o-2", "colour": "red"})").value()).value() << '\n';

  for (const auto* wrong : {R"({"items": [{"name": "nut", "quantity": "three"}]})",
                            R"({"items": [{"name": "nut"}]})", R"({"box": "medium"})"}) {
    std::cout << pawl::decode<Order>(wrong).error().message() << '\n';
  }
}

// prints: {"id":"o-1","items":[{"name":"nut","quantity":3}],"box":"large","patience":"1200s"}
// prints: nut
// prints: {"id":"o-2","items":[],"box":"small","patience":"1200s"}
// prints: $.items[0].quantity: expected integer, got string
// prints: $.items[0].quantity: is required
// prints: $.box: expected one of small, large, got "medium"
