// SPDX-License-Identifier: Apache-2.0
// Counts allocations, so that a tick can be seen to need none. A file of its own, so that the compiler does
// not see both ends of an allocation and take them for a mismatch.
#include "bench/supervise_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::uint64_t> counted = 0;
}  // namespace

void* operator new(std::size_t size) {
  counted.fetch_add(1, std::memory_order_relaxed);
  if (void* place = std::malloc(size == 0 ? 1 : size)) return place;
  throw std::bad_alloc();
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }

namespace bench {

std::uint64_t allocations() { return counted; }

}  // namespace bench
