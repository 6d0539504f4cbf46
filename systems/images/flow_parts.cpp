// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "images/flows.hpp"
#include "images/garbage.hpp"

namespace pawl::images {

RetryPolicy exponential(std::uint32_t retries, Jitter jitter) {
  return {.retries = retries,
          .first = std::chrono::milliseconds(100),
          .factor = 2.0,
          .cap = std::chrono::seconds(5),
          .jitter = jitter};
}

RetryPolicy fixed(std::uint32_t retries) {
  return {.retries = retries,
          .first = std::chrono::seconds(1),
          .factor = 1.0,
          .cap = std::chrono::seconds(1),
          .jitter = Jitter::none};
}

Query query_of(Step& step) {
  return [&step](const Sql& statement) { return step.query(statement); };
}

Result<void> check_idle(Step& step, std::string_view image_id,
                        std::initializer_list<std::string_view> flows) {
  for (const auto flow : flows) {
    const auto run = step.get(flow, image_id);
    if (!run && run.error().code() == Code::unknown_instance) continue;
    if (!run) return fail(run.error());
    if (!run->finished) {
      return fail(Code::volume_busy,
                  fmt::format("{} of image \"{}\" has not ended; cancel it, or wait", flow, image_id));
    }
  }
  return {};
}

Result<void> check_not_removed(Step& step, std::string_view image_id) {
  const auto whole = step.get(kProcess, image_id);
  if (whole && !whole->finished && step.flow() != kProcess) return {};
  return check_idle(step, image_id, {kRemove});
}

Result<void> check_own(Step& step, std::string_view image_id) {
  if (step.id() == image_id) return {};
  PAWL_CHECK(check_idle(step, image_id, {kProcess, kDownload, kUnpack, kActivate}));
  return fail(Code::invalid_argument,
              fmt::format("image \"{}\": only a run with this id can change it; this one is \"{}\"", image_id,
                          step.id()));
}

bool is_sound(const std::optional<FoundVolume>& found, const Volume& volume) {
  return found && found->complete && is_volume(*found, volume);
}

Result<bool> remove_volume(Backend& pool, const Volume& volume) {
  PAWL_TRY(const auto found, pool.find(volume));
  if (!found || !is_volume(*found, volume)) return false;
  PAWL_CHECK(pool.remove(volume.id));
  return true;
}

RetryPolicy retry_by_class() { return exponential(kOtherRetries + kStorageRetries); }

Outcome limit_retries(ImageServices& services, const Step& step, ErrorClass error_class, Outcome outcome) {
  if (outcome.kind() != Outcome::Kind::again) {
    services.forget_errors(step.run_ulid());
    return outcome;
  }
  const auto retries = error_class == ErrorClass::storage ? kStorageRetries : kOtherRetries;
  if (services.count_error(step.run_ulid(), error_class) <= retries) return outcome;
  services.forget_errors(step.run_ulid());
  return Outcome::unrecoverable(fmt::format("{} (after {} retries)", outcome.error()->to_string(), retries));
}

Outcome abort_or_retry(const Error& error) {
  switch (error.code()) {
    case Code::invalid_argument:
    case Code::source_missing:
    case Code::source_denied:
    case Code::too_large:
    case Code::disk_full:
    case Code::archive_corrupt:
    case Code::archive_hostile:
    case Code::layout_invalid:
    case Code::pool_full:
    case Code::volume_missing:
      return Outcome::abort(error.to_string());
    default:
      return error;
  }
}

Outcome refuse_pool(const Error& error) {
  if (error.code() == Code::volume_exists) return Outcome::abort(error.to_string());
  return abort_or_retry(error);
}

void add_image_flows(Flows& flows, ImageServices& services) {
  flows.add(download_flow(services))
      .add(unpack_flow(services))
      .add(activate_flow(services))
      .add(process_flow(services, flows))
      .add(reactivate_flow(services))
      .add(deactivate_flow(services))
      .add(remove_flow(services))
      .add(collect_flow(services));
}

}  // namespace pawl::images
