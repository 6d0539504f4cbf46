// SPDX-License-Identifier: Apache-2.0
#include "tests/supervise/lab.hpp"

namespace pawl::test {

WorkerType lift_type(Lab& lab, Runtime& runtime, const std::string& name) {
  auto type =
      define_worker<Lift>([&lab, &runtime](const WorkerIdentity& who) -> Result<std::shared_ptr<void>> {
        ++lab.made;
        return std::make_shared<LiftTools>(LiftTools{&lab, &runtime, who.path});
      });
  type.name = name;
  type.machine.name = "worker_" + name;
  return type;
}

}  // namespace pawl::test
