// SPDX-License-Identifier: Apache-2.0
#include "workers/page.hpp"

namespace pawl::workers {

const char* const kPageScript = R"js(
export default (place) => { place.textContent = ''; };
)js";

}  // namespace pawl::workers
