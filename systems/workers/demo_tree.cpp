// SPDX-License-Identifier: Apache-2.0
#include "workers/demo_tree.hpp"

namespace pawl::workers {

const char* const kDemoTree =
    R"yaml(# Try: pawl workers tree; pawl workers park plant; pawl workers logs ticker
variables:
  global: {site: north}
children:
  - name: plant
    workerType: parent
    userSpec:
      config: |
        children_count: 2
        child_worker_type: child
        child_config: |
          address: "{{ .IP }}:{{ .PORT }}"
          device: '{{ .DEVICE_ID }} at {{ .global.site }}'
      variables:
        user: {IP: 10.0.0.7, PORT: 502}
  - name: ticker
    workerType: process
    userSpec:
      config:
        command: [/bin/sh, -c, 'n=0; while :; do n=$((n+1)); echo "tick $n"; sleep 5; done']
  - name: flaky
    workerType: failing
    userSpec:
      config: |
        should_fail: true
        max_failures: 3
        failure_cycles: 1000000
)yaml";

}  // namespace pawl::workers
