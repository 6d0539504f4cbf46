// SPDX-License-Identifier: Apache-2.0
// The application's own table changes in the commit of the transition, and its constraints can refuse both.
#include <iostream>

#include "pawl/engine.hpp"
#include "pawl/sim_disk.hpp"

enum class Account { requested, open, closed };
struct Open {
  std::string email;
};
struct Close {};
struct Owner {
  std::string email;
};

// excerpt: machine
constexpr auto account =
    pawl::machine<Account, Owner>("account")
        .initial(Account::requested)
        .on<Open>(Account::requested, Account::open,
                  [](Owner& owner, const Open& open, pawl::Effects& effects) {
                    owner.email = open.email;
                    effects.sql({.text = "INSERT INTO email(address) VALUES(?1)", .rows = {{open.email}}});
                  })
        .on<Close>(Account::open, Account::closed,
                   [](Owner& owner, const Close&, pawl::Effects& effects) {
                     effects.sql({.text = "DELETE FROM email WHERE address = ?1",
                                  .rows = {{owner.email}},
                                  .expect = 1});  // any other number of rows refuses the transition
                   })
        .terminal(Account::closed);
// excerpt end
static_assert(pawl::verified<account>);

int main() {
  pawl::ThreadRuntime runtime;
  pawl::sim::Disk disk{1};  // in memory; leave out `vfs` for a real file
  // excerpt: open
  const auto engine =
      pawl::Engine::open(runtime, pawl::Machines().add<account>(),
                         {.store = "sqlite:accounts.db",
                          .vfs = disk.vfs_name(),
                          .schema = {{.text = "CREATE TABLE IF NOT EXISTS email(address TEXT PRIMARY KEY)"}}})
          .value();
  for (const auto* key : {"ada", "eve"}) engine->create<account>(key).value();
  engine->send<account>("ada", Open{.email = "ada@example.org"}).value();

  const auto refused = engine->send<account>("eve", Open{.email = "ada@example.org"});
  std::cout << refused.error().message() << '\n';  // its code is sql_failed
  const auto rows = engine->query({.text = "SELECT count(*) FROM email"}).value();
  // excerpt end
  std::cout << "eve is " << engine->read("account", "eve").value().state
            << ", addresses: " << std::get<std::int64_t>(rows[0][0].get()) << '\n';
}

// prints: SQLite says 'UNIQUE constraint failed: email.address': INSERT INTO email(address) VALUES(?1)
// prints: eve is requested, addresses: 1
