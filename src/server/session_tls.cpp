// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/write.hpp>

#include "server/session.hpp"

namespace pawl::server {

void run_tls(std::shared_ptr<Shared> shared, std::shared_ptr<Loop> loop, Socket socket,
             std::shared_ptr<QuotaSlot> slot, const std::shared_ptr<asio::ssl::context>& context) {
  const auto executor = loop->context.get_executor();
  auto session = std::make_shared<Session<TlsStream>>(std::move(shared), std::move(loop), std::move(slot),
                                                      std::move(socket), *context);
  asio::co_spawn(executor, Session<TlsStream>::run(std::move(session)), asio::detached);
}

}  // namespace pawl::server
