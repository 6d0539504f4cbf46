// SPDX-License-Identifier: Apache-2.0
// A status column that moves legally: the machine writes the compare-and-set, and explains a refusal.
#include <iostream>

#include "pawl/row_machine.hpp"

enum class Advisory { received, analyzing, published, rejected };
struct Analyze {};
struct Publish {};
struct Reject {};
struct Nothing {};

constexpr auto advisory =
    pawl::machine<Advisory, Nothing>("advisory")
        .initial(Advisory::received)
        .on<Analyze>(Advisory::received, Advisory::analyzing)
        .on<Publish>(Advisory::analyzing, Advisory::published)
        .on<Reject>(pawl::from(Advisory::received, Advisory::analyzing), Advisory::rejected)
        .terminal(Advisory::published, Advisory::rejected);

int main() {
  constexpr pawl::RowMachine<advisory> rows{{.table = "advisory", .column = "status", .key = "id"}};
  const auto sql = rows.update<Publish>({"a-1", "a-2"});
  std::cout << sql.text << '\n';
  std::cout << "runs " << sql.rows.size() << " times, must change " << *sql.expect << " rows\n";

  // The application has read the row that did not move: "received".
  std::cout << rows.refusal<Publish>("a-2", "received").message() << '\n';
}

// prints: UPDATE "advisory" SET "status" = 'published' WHERE "id" = ?1 AND "status" IN ('analyzing')
// prints: runs 2 times, must change 2 rows
// prints: advisory "a-2" is received: it does not accept Publish; legal: Analyze, Reject
