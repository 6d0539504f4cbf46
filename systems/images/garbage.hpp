// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Finds what is only in the tables or only in the pool, also volumes that are not
/// active, and removes it in a flow. A row that can be restored is restored instead.
///
///     PAWL_TRY(const auto findings, find_garbage(services, pools, query, is_busy));
///     flows.start("collect-image-garbage", "{}", {.id = "all"});

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "images/flows.hpp"
#include "images/image_services.hpp"

namespace pawl::images {

enum class GarbageKind : std::uint8_t {
  unknown_volume,       ///< in the pool, in no table
  abandoned_volume,     ///< was being made by a run that has ended
  unreferenced_volume,  ///< belongs to no image and no snapshot any more
  lost_image,           ///< the tables say it is unpacked; the pool has no such volume
  lost_snapshot,        ///< likewise
  orphan_file,          ///< an archive, or a part of one, that belongs to no image
  unlisted_volume,      ///< an image or a snapshot has it, and so has the pool; only its own row is lost
  unlisted_image,       ///< is unpacked or has snapshots; the row that says which object it is is lost
};

struct Garbage {
  GarbageKind kind = GarbageKind::unknown_volume;
  std::uint32_t volume = 0;
  std::string image_id{};
  std::string name{};  ///< of the volume, or the path of the file
  std::string pool{};  ///< of the volume; empty: the default one
  bool operator==(const Garbage&) const = default;
};

/// Whether a run works on this image.
using IsBusy = std::function<Result<bool>(std::string_view image_id)>;

/// By their names.
using AttachedPools = std::map<std::string, Backend*>;
/// Those that are attached now. Error: that of the default one if none is.
Result<AttachedPools> attached_pools(const ImageServices& services);

/// A pool that is not among `pools` is not looked at: nothing in it, and no row of it, is garbage.
///
/// What belongs to an image that a run works on is never garbage. Runs go on meanwhile and end, so only what
/// is found by two passes, one after the other, is reported.
Result<std::vector<Garbage>> find_garbage(ImageServices& services, const AttachedPools& pools,
                                          const Query& query, const IsBusy& is_busy);

struct CollectRequest {};
Flow<CollectRequest, ActionReport> collect_flow(ImageServices& services);

/// Whether a run of one of the flows works on an image, by way of asking for each of them.
Result<bool> is_worked_on(std::string_view image_id,
                          const std::function<Result<Run>(std::string_view flow, std::string_view id)>& get);

}  // namespace pawl::images
