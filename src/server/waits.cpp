// SPDX-License-Identifier: Apache-2.0
#include "server/waits.hpp"

#include <utility>

namespace pawl::server {
namespace {

Error stopping() { return {Code::stopped, "the server is stopping; ask again when it is back"}; }

}  // namespace

http::Reply Waits::hold(http::Reply reply) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->closed) {
      id = ++state_->last;
      state_->replies.emplace(id, std::move(reply));
    }
  }
  if (id == 0) reply(fail(stopping()));
  return [state = state_, id](Result<http::Response> outcome) {
    std::unique_lock lock(state->mutex);
    auto node = state->replies.extract(id);
    lock.unlock();
    if (node) node.mapped()(std::move(outcome));
  };
}

void Waits::close() {
  std::unique_lock lock(state_->mutex);
  state_->closed = true;
  auto replies = std::exchange(state_->replies, {});
  lock.unlock();
  for (auto& [id, reply] : replies) reply(fail(stopping()));
}

}  // namespace pawl::server
