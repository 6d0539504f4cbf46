// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>

#include "server/session.hpp"

namespace pawl::server {

void run_plain(std::shared_ptr<Shared> shared, std::shared_ptr<Loop> loop, Socket socket,
               Result<std::shared_ptr<QuotaSlot>> slot) {
  const auto executor = loop->context.get_executor();
  auto session = std::make_shared<Session<Socket>>(std::move(shared), std::move(loop), slot.value_or(nullptr),
                                                   std::move(socket));
  if (!slot) {
    asio::co_spawn(executor, Session<Socket>::refuse(std::move(session), wire_response(slot.error())),
                   asio::detached);
  } else {
    asio::co_spawn(executor, Session<Socket>::run(std::move(session)), asio::detached);
  }
}

}  // namespace pawl::server
