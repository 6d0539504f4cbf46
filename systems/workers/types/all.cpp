// SPDX-License-Identifier: Apache-2.0
#include "workers/types/all.hpp"

#include "workers/types/child.hpp"
#include "workers/types/failing.hpp"
#include "workers/types/file_watch.hpp"
#include "workers/types/group.hpp"
#include "workers/types/helloworld.hpp"
#include "workers/types/http_check.hpp"
#include "workers/types/mqtt_client.hpp"
#include "workers/types/panic.hpp"
#include "workers/types/parent.hpp"
#include "workers/types/slow.hpp"
#include "workers/types/tcp_check.hpp"

namespace pawl::workers {

void add_worker_types(WorkerTypes& types, const TypeServices& services) {
  add_tcp_check(types);
  add_http_check(types);
  add_file_watch(types);
  add_mqtt_client(types);
  add_group(types);
  add_child(types, services);
  add_parent(types);
  add_failing(types);
  add_slow(types, services);
  add_panic(types);
  add_helloworld(types, services);
}

}  // namespace pawl::workers
