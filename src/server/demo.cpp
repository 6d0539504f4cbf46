// SPDX-License-Identifier: Apache-2.0
// The demo: a shop whose customers never sleep, so that a new user sees instances move within a minute.
#include "server/demo.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "pawl/flows.hpp"
#include "pawl/machine.hpp"
#include "server/demo_flow.hpp"

namespace pawl::server {
namespace demo {

using namespace std::chrono_literals;

enum class Order { placed, charging, packing, shipping, delivered, cancelled };
struct Checkout {};
struct Charge {
  std::int64_t cents = 0;
};
struct Charged {
  std::string receipt;
};
struct ChargeFailed {
  std::string reason;
};
struct Packed {};
struct Deliver {
  std::string city;
};
struct Delivered {};
struct Cancel {
  std::string reason;
};
struct Cart {
  std::string item;
  std::string city;
  std::int64_t cents = 0;
  std::int64_t pack_seconds = 2;
  std::string receipt{};
  std::string reason{};
};

inline constexpr auto order =
    machine<Order, Cart>("demo_order")
        .initial(Order::placed)
        .on<Checkout>(
            Order::placed, Order::charging,
            [](Cart& cart, const Checkout&, Effects& effects) { effects.work("charge", Charge{cart.cents}); })
        .on<Charged>(Order::charging, Order::packing,
                     [](Cart& cart, const Charged& charged, Effects& effects) {
                       cart.receipt = charged.receipt;
                       effects.set_timer("packed", std::chrono::seconds(cart.pack_seconds), Packed{});
                     })
        .on<ChargeFailed>(Order::charging, Order::cancelled,
                          [](Cart& cart, const ChargeFailed& failed) { cart.reason = failed.reason; })
        .on<Packed>(
            Order::packing, Order::shipping,
            [](Cart& cart, const Packed&, Effects& effects) { effects.work("deliver", Deliver{cart.city}); })
        .on<Delivered>(Order::shipping, Order::delivered)
        .on<Cancel>(Order::placed, Order::cancelled,
                    [](Cart& cart, const Cancel& cancel) { cart.reason = cancel.reason; })
        .on<Cancel>(Order::packing, Order::cancelled,
                    [](Cart& cart, const Cancel& cancel, Effects& effects) {
                      cart.reason = cancel.reason;
                      effects.clear_timer("packed");
                    })
        .terminal(Order::delivered, Order::cancelled);
static_assert(verified<order>);

constexpr std::array kItems{"lamp", "teapot", "notebook", "bicycle bell", "umbrella", "compass"};
constexpr std::array kCities{"Lisbon", "Oslo", "Kyoto", "Quito", "Nairobi", "Wellington"};
constexpr Duration kPace = 700ms;
constexpr int kOrdersPerDelivery = 6;
constexpr const char* kCouriers = "demo_couriers";

// The demo's page; docs/dashboard.md describes the interface of pages.
constexpr const char* kPage = R"js(
const make = (name, text, className) =>
  Object.assign(document.createElement(name), { textContent: text ?? '', className: className ?? '' });
const money = (cents) => (Number(cents) / 100).toFixed(2);

export default (place, host) => {
  const card = make('section', '', 'card flush');
  const head = make('header', '', 'card-head');
  const total = make('span', 'Nothing delivered yet', 'quiet number');
  head.append(make('h2', 'Delivered lately'), total);
  const table = make('table');
  const titles = make('tr');
  for (const title of ['Item', 'City', 'Price', 'Order']) titles.append(make('th', title));
  const rows = make('tbody');
  table.append(make('thead'), rows);
  table.tHead.append(titles);
  const scroll = make('div', '', 'table-place');
  scroll.append(table);
  card.append(head, scroll);
  place.append(card);

  let sum = 0;
  host.follow({ machine: 'demo_order', state: 'delivered', recent: 300 }, ({ key, data }) => {
    sum += Number(data.cents);
    total.textContent = `${money(sum)} earned`;
    const row = make('tr');
    const link = make('a', key, 'mono');
    link.href = `/instances/demo_order/${encodeURIComponent(key)}`;
    link.onclick = (event) => {
      event.preventDefault();
      host.go(link.href);
    };
    const price = make('td', money(data.cents), 'number');
    row.append(make('td', data.item), make('td', data.city), price, make('td'));
    row.lastChild.append(link);
    rows.prepend(row);
    if (rows.rows.length > 20) rows.lastChild.remove();
  });

  const order = make('button', 'Order a teapot', 'primary');
  order.disabled = !host.may('operator');
  if (order.disabled) order.title = 'Ordering needs the role operator';
  order.onclick = async () => {
    const key = `teapot-${Date.now().toString(36)}`;
    await host.send('POST', '/v1/instances/demo_order', {
      key, data: { item: 'teapot', city: 'Lisbon', cents: 2400, pack_seconds: 5 } });
    await host.send('POST', `/v1/instances/demo_order/${key}/events`, { event: 'Checkout' });
    host.go(`/instances/demo_order/${key}`);
  };
  const bar = make('p');
  bar.append(order);
  place.prepend(bar);
};
)js";

class Demo final : public System {
 public:
  ~Demo() override { stop(); }
  std::string name() const override { return "demo"; }
  std::string summary() const override { return "orders and deliveries that move by themselves"; }

  void add_flows(Flows& flows) override {
    flows.add(delivery_flow());
    flows_ = &flows;
  }
  void add_machines(Machines& machines) override {
    machines.add<order>();
    machines.work<order, Charge>(
        "charge", [this](const WorkContext& context, const Charge& charge) { return pay(context, charge); },
        {.retry = {.retries = 3, .first = 500ms}, .failed = on_failure<ChargeFailed>()});
    machines.work<order, Deliver>(
        "deliver", [this](const WorkContext& context, const Deliver&) { return deliver(context); },
        {.pool = kCouriers});
  }
  std::map<std::string, std::uint32_t> pools() const override { return {{kCouriers, 3}, {kDock, 2}}; }

  std::vector<Verb> verbs() override {
    return {{.name = "diagram",
             .summary = "Print the diagram of the demo's machine for Mermaid",
             .local = true,
             .run = [](const VerbCall&) {
               fmt::print("{}", to_mermaid(define<order>()));
               return 0;
             }}};
  }

  std::optional<Page> page() override { return Page{.title = "Shop", .script = kPage}; }

  Result<void> start(Runtime& runtime, Engine& engine) override {
    engine_ = &engine;
    {
      const std::lock_guard lock(mutex_);
      runtime_ = &runtime;
    }
    started_.notify_all();
    lane_ = runtime.open_lane("demo");
    // Tasks must not use the pointer, which is empty as soon as the lane is being destroyed.
    lane_->post([this, &lane = *lane_] { next_order(lane); });
    return {};
  }
  void stop() override { lane_.reset(); }

 private:
  /// Waits for `start`: interrupted work resumes when the engine opens, which is earlier.
  bool may_begin(const WorkContext& context) {
    std::unique_lock lock(mutex_);
    return started_.wait(lock, context.stop, [&] { return runtime_ != nullptr; });
  }

  /// The bank is sometimes busy, and refuses the most expensive orders.
  Result<Reply> pay(const WorkContext& context, const Charge& charge) {
    if (!may_begin(context)) return fail(Code::cancelled, "the shop did not open");
    pause(context, std::chrono::milliseconds(200 + runtime_->random() % 800));
    if (charge.cents > 9500) return fail(Code::invalid_argument, "the card's limit is 95.00");
    if (runtime_->random() % 8 == 0) return fail(Code::timed_out, "the bank is busy");
    return reply(Charged{.receipt = context.request_id()});
  }

  Result<Reply> deliver(const WorkContext& context) {
    if (!may_begin(context)) return fail(Code::cancelled, "the shop did not open");
    pause(context, 1s + std::chrono::milliseconds(runtime_->random() % 2000));
    if (context.stop.stop_requested()) return fail(Code::cancelled, "the courier was called back");
    return reply(Delivered{});
  }

  void pause(const WorkContext& context, Duration time) {
    Gate gate;
    const std::stop_callback stopped(context.stop, [&gate] { gate.open(); });
    runtime_->wait(gate, time);
  }

  /// Outcomes are not awaited: an order that is refused, for example on a full disk, does not exist.
  void next_order(Lane& lane) {
    const auto number = engine_->last_seq();
    auto key = fmt::format("order-{}-{:04x}", number, runtime_->random() % 0x10000);
    const Cart cart{.item = kItems[runtime_->random() % kItems.size()],
                    .city = kCities[runtime_->random() % kCities.size()],
                    .cents = static_cast<std::int64_t>(500 + runtime_->random() % 9500),
                    .pack_seconds = static_cast<std::int64_t>(1 + runtime_->random() % 6)};
    engine_->submit(Transaction{}.create<order>(key, cart), [](const auto&) {});
    engine_->submit(Transaction{}.send<order>(key, Checkout{}), [](const auto&) {});
    if (++orders_ % kOrdersPerDelivery == 1) next_delivery(cart);
    lane.after(kPace, [this, &lane] { next_order(lane); });
  }

  void next_delivery(const Cart& cart) {
    auto request = encode(Consignment{.item = cart.item, .city = cart.city});
    if (!request) return;
    flows_->start(kDelivery, *std::move(request),
                  {.queue = kDock, .priority = static_cast<std::int32_t>(runtime_->random() % 3)},
                  [](const auto&) {});
  }

  std::mutex mutex_;
  std::condition_variable_any started_;
  Runtime* runtime_ = nullptr;  // not changed any more once it is set
  Engine* engine_ = nullptr;
  Flows* flows_ = nullptr;
  int orders_ = 0;
  std::unique_ptr<Lane> lane_;
};

}  // namespace demo

std::unique_ptr<System> make_demo() { return std::make_unique<demo::Demo>(); }

}  // namespace pawl::server
