// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/sqlite_store.hpp"

namespace pawl::sqlite {

Result<bool> SqliteStore::retain(Seq /*horizon*/, Seq /*forget*/) { return fail(Code::internal, "not yet"); }
Result<void> SqliteStore::backup(const std::string& /*path*/,
                                 const std::function<void(double)>& /*progress*/) {
  return fail(Code::internal, "not yet");
}
Result<StoreCheck> SqliteStore::check() { return fail(Code::internal, "not yet"); }

}  // namespace pawl::sqlite
