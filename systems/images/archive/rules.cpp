// SPDX-License-Identifier: Apache-2.0
#include "images/archive/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "images/archive/findings.hpp"

namespace pawl::images {
namespace {

constexpr std::string_view kRootfs = "rootfs";
constexpr std::string_view kPreset = "; images.policy: distribution allows it";

/// Takes the first component off a path; empty ones count as ".".
std::string_view take_component(std::string_view& path) {
  const auto slash = path.find('/');
  const auto component = path.substr(0, slash);
  path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  return component;
}

bool is_dot(std::string_view component) { return component.empty() || component == "."; }

/// Why a name cannot be written below a root; nothing where it can.
std::optional<std::pair<Violation, std::string>> name_problem(std::string_view path) {
  if (path.empty()) return {{Violation::bad_name, "has an empty name"}};
  if (path.starts_with('/')) return {{Violation::absolute_path, "has an absolute name"}};
  if (path.size() > Rules::kLongestPath) {
    return {{Violation::bad_name,
             fmt::format("has a name of {} bytes; it has {} at most", path.size(), Rules::kLongestPath)}};
  }
  std::size_t depth = 0;
  while (!path.empty()) {
    const auto component = take_component(path);
    if (component == "..") return {{Violation::parent_path, "has \"..\" in its name"}};
    if (component.size() > Rules::kLongestComponent) {
      return {{Violation::bad_name, fmt::format("has a part of {} bytes in its name; it has {} at most",
                                                component.size(), Rules::kLongestComponent)}};
    }
    if (!is_dot(component) && ++depth > Rules::kDeepest) {
      return {{Violation::bad_name, fmt::format("is more than {} directories deep", Rules::kDeepest)}};
    }
  }
  return {};
}

/// The components joined, without ".".
std::string normal_path(std::string_view path) {
  std::string normal;
  normal.reserve(path.size());
  while (!path.empty()) {
    const auto component = take_component(path);
    if (is_dot(component)) continue;
    if (!normal.empty()) normal += '/';
    normal += component;
  }
  return normal;
}

bool is_below(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() + 1 && path.starts_with(directory) && path[directory.size()] == '/';
}

/// How many directories are between a boundary and what is in the directory of `path`.
std::int64_t depth_in_boundary(std::string_view path) {
  const auto slashes = std::ranges::count(path, '/');
  return is_below(path, kRootfs) ? slashes - 1 : slashes;
}

}  // namespace

ArchivePolicy policy_of(PolicyPreset preset) noexcept {
  if (preset == PolicyPreset::strict) return {};
  return {.set_id = SetIdPolicy::allow,
          .absolute_links = AbsoluteLinkPolicy::in_root,
          .devices = DevicePolicy::below_dev,
          .case_collisions = CasePolicy::allow};
}

Rules::Rules(const ArchiveLimits& limits, const ArchivePolicy& policy) : limits_(limits), policy_(policy) {}

std::string Rules::key_name(std::string_view name) const {
  std::string key(name);
  if (policy_.case_collisions == CasePolicy::allow) return key;
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return key;
}

Result<std::optional<Rules::Id>> Rules::find(Id parent, std::string_view name, std::string_view path) const {
  const auto found = children_.find(KeyView(parent, key_name(name)));
  if (found == children_.end()) return std::nullopt;
  if (nodes_[found->second].name != name) {
    return hostile(
        Violation::case_collision, path,
        fmt::format(
            "differs from \"{}\" only in upper and lower case; images.case_collisions can allow that{}",
            entry_name(path_of(found->second)), kPreset));
  }
  return found->second;
}

Rules::Id Rules::add(Id parent, EntryKind kind, std::string_view name) {
  const auto id = static_cast<Id>(nodes_.size());
  nodes_.push_back({parent, kind, std::string(name)});
  children_.emplace(Key(parent, key_name(name)), id);
  return id;
}

/// The directory that an entry is in; made where the archive has not had it.
Result<Rules::Id> Rules::parent_of(const Admitted& entry) {
  const auto slash = entry.path.rfind('/');
  if (slash == std::string::npos) return kRoot;
  std::string_view rest(entry.path.data(), slash);
  if (rest == last_parent_) return last_parent_id_;
  Id at = kRoot;
  while (!rest.empty()) {
    const auto component = take_component(rest);
    PAWL_TRY(const auto found, find(at, component, entry.path));
    if (!found) {
      if (++implied_ > limits_.entries) {
        return hostile(Violation::too_many_entries, entry.path,
                       fmt::format("needs more than {} directories that have no entry (images.entries)",
                                   limits_.entries));
      }
      at = add(at, EntryKind::directory, component);
      continue;
    }
    at = *found;
    if (nodes_[at].kind == EntryKind::symlink) {
      return hostile(Violation::through_symlink, entry.path,
                     fmt::format("is below \"{}\", a symbolic link", entry_name(path_of(at))));
    }
    if (nodes_[at].kind != EntryKind::directory) {
      return hostile(Violation::duplicate_name, entry.path,
                     fmt::format("is below \"{}\", which is no directory", entry_name(path_of(at))));
    }
  }
  last_parent_.assign(entry.path, 0, slash);
  last_parent_id_ = at;
  return at;
}

/// Enters the name; nothing where it is a directory that is there already.
Result<std::optional<Rules::Id>> Rules::place(const Admitted& entry) {
  PAWL_TRY(const auto parent, parent_of(entry));
  const auto name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
  PAWL_TRY(const auto found, find(parent, name, entry.path));
  if (!found) {
    return add(parent, entry.kind == EntryKind::hardlink ? EntryKind::regular : entry.kind, name);
  }
  if (nodes_[*found].kind == EntryKind::directory && entry.kind == EntryKind::directory) return std::nullopt;
  return hostile(Violation::duplicate_name, entry.path, "is in the archive twice");
}

std::optional<Rules::Id> Rules::look_up(std::string_view path) const {
  Id at = kRoot;
  while (!path.empty()) {
    const auto component = take_component(path);
    if (nodes_[at].kind != EntryKind::directory) return {};
    const auto found = children_.find(KeyView(at, key_name(component)));
    if (found == children_.end() || nodes_[found->second].name != component) return {};
    at = found->second;
  }
  return at;
}

std::string Rules::path_of(Id id) const {
  std::string path;
  for (; id != kRoot; id = nodes_[id].parent) {
    path = path.empty() ? nodes_[id].name : nodes_[id].name + "/" + path;
  }
  return path;
}

Result<void> Rules::check_size(const EntryHead& head) {
  if (head.kind != EntryKind::regular) return {};
  if (head.size > limits_.file_bytes) {
    return hostile(
        Violation::file_too_large, head.path,
        fmt::format("has {} bytes; a file has {} at most (images.file_size)", head.size, limits_.file_bytes));
  }
  if (head.size > limits_.total_bytes || bytes_ > limits_.total_bytes - head.size) {
    return hostile(Violation::total_too_large, head.path,
                   fmt::format("makes the content more than {} bytes in all (images.content_size)",
                               limits_.total_bytes));
  }
  bytes_ += head.size;
  ++files_;
  return {};
}

Result<std::uint32_t> Rules::check_mode(const EntryHead& head) const {
  constexpr std::uint32_t kSetIds = 06000;
  switch (head.kind) {
    case EntryKind::directory:
      return head.mode;
    case EntryKind::regular:
    case EntryKind::hardlink:
      if ((head.mode & kSetIds) == 0 || policy_.set_id == SetIdPolicy::allow) return head.mode;
      if (policy_.set_id == SetIdPolicy::strip) return head.mode & ~kSetIds;
      return hostile(Violation::set_id, head.path,
                     fmt::format("is setuid or setgid (mode {:04o}); images.set_id can strip or allow it{}",
                                 head.mode, kPreset));
    case EntryKind::symlink:
    case EntryKind::fifo:
    case EntryKind::character_device:
    case EntryKind::block_device:
      return head.mode & ~kSetIds;
  }
  return head.mode;
}

Result<void> Rules::check_device(const Admitted& entry) const {
  if (entry.kind != EntryKind::character_device && entry.kind != EntryKind::block_device) return {};
  if (policy_.devices == DevicePolicy::below_dev &&
      (is_below(entry.path, "dev") || is_below(entry.path, "rootfs/dev"))) {
    return {};
  }
  return hostile(Violation::device_node, entry.path,
                 policy_.devices == DevicePolicy::reject
                     ? fmt::format("is a device node; images.devices can allow those below dev/{}", kPreset)
                     : "is a device node outside dev/");
}

Result<Rules::Link> Rules::check_symlink(const Admitted& entry, std::string_view target) const {
  if (target.empty() || target.size() > kLongestPath) {
    return hostile(Violation::bad_name, entry.path,
                   fmt::format("links to a name of {} bytes; it has 1 to {}", target.size(), kLongestPath));
  }
  Link link{.target = std::string(target)};
  auto depth = depth_in_boundary(entry.path);
  if (target.starts_with('/')) {
    if (policy_.absolute_links == AbsoluteLinkPolicy::reject) {
      return hostile(
          Violation::symlink_absolute, entry.path,
          fmt::format("links to \"{}\", which is absolute; images.absolute_links can take it as seen "
                      "from the root file system{}",
                      entry_name(target), kPreset));
    }
    depth = 0;
  }
  bool down = false;
  for (auto rest = target; !rest.empty();) {
    const auto component = take_component(rest);
    if (is_dot(component)) continue;
    if (component != "..") {
      down = true;
      ++depth;
      continue;
    }
    link.winding = link.winding || down;
    if (--depth < 0) {
      return hostile(Violation::symlink_escape, entry.path,
                     fmt::format("links to \"{}\", which is outside {}", entry_name(target),
                                 is_below(entry.path, kRootfs) ? "rootfs/" : "the archive"));
    }
  }
  return link;
}

Result<std::string> Rules::check_hardlink(const Admitted& entry, std::string_view target) const {
  if (name_problem(target)) {
    return hostile(
        Violation::hardlink_escape, entry.path,
        fmt::format("is a hard link to \"{}\", which is no name in the archive", entry_name(target)));
  }
  auto path = normal_path(target);
  const auto found = look_up(path);
  if (!found || nodes_[*found].kind != EntryKind::regular) {
    return hostile(Violation::hardlink_escape, entry.path,
                   fmt::format("is a hard link to \"{}\", which is no regular file that precedes it",
                               entry_name(target)));
  }
  return path;
}

Result<Admitted> Rules::admit(const EntryHead& head) {
  if (entries_ == limits_.entries) {
    return hostile(
        Violation::too_many_entries, head.path,
        fmt::format("follows {} others; an archive has no more (images.entries)", limits_.entries));
  }
  ++entries_;
  if (auto problem = name_problem(head.path)) return hostile(problem->first, head.path, problem->second);
  PAWL_CHECK(check_size(head));
  Admitted entry{.kind = head.kind, .path = normal_path(head.path), .size = head.size};
  PAWL_TRY(entry.mode, check_mode(head));
  if (entry.path.empty()) {
    if (entry.kind == EntryKind::directory) return entry;
    return hostile(Violation::bad_name, head.path, "is the root, but no directory");
  }
  PAWL_CHECK(check_device(entry));
  if (entry.kind == EntryKind::hardlink) {
    PAWL_TRY(entry.link, check_hardlink(entry, head.link));
  }
  Link link;
  if (entry.kind == EntryKind::symlink) {
    PAWL_TRY(link, check_symlink(entry, head.link));
    entry.link = link.target;
  }
  PAWL_TRY(const auto id, place(entry));
  if (id && entry.kind == EntryKind::symlink) links_.emplace(*id, std::move(link));
  return entry;
}

/// Where a chain of links must not go above.
Rules::Id Rules::boundary_of(Id id) const {
  while (nodes_[id].parent != kRoot) id = nodes_[id].parent;
  return nodes_[id].name == kRootfs && nodes_[id].kind == EntryKind::directory ? id : kRoot;
}

/// Follows a link as the kernel would.
bool Rules::stays_inside(Id link, std::uint64_t& budget) const {
  constexpr int kMostLinks = 40;  // the kernel gives up there
  const auto boundary = boundary_of(link);
  auto at = nodes_[link].parent;
  std::vector<std::string_view> rest;
  const auto follow = [&](Id id) {
    rest.emplace_back(links_.at(id).target);
    if (rest.back().starts_with('/')) at = boundary;
  };
  follow(link);
  for (int followed = 0; !rest.empty();) {
    if (rest.back().empty()) {
      rest.pop_back();
      continue;
    }
    const auto component = take_component(rest.back());
    if (is_dot(component)) continue;
    if (budget-- == 0) return false;
    if (component == "..") {
      if (at == boundary) return false;
      at = nodes_[at].parent;
      continue;
    }
    const auto found = children_.find(KeyView(at, key_name(component)));
    if (found == children_.end() || nodes_[found->second].name != component) return true;
    const auto kind = nodes_[found->second].kind;
    if (kind == EntryKind::symlink) {
      if (++followed == kMostLinks) return true;
      follow(found->second);
    } else if (kind == EntryKind::directory) {
      at = found->second;
    } else {
      return true;
    }
  }
  return true;
}

Result<void> Rules::finish() const {
  // A link that first goes up through directories, which are no links, and then down is inside if the links
  // on its way are. Only one that goes up again may leave by way of another.
  std::uint64_t budget = 4'000'000;
  for (const auto& [id, link] : links_) {
    if (!link.winding || stays_inside(id, budget)) continue;
    return hostile(
        Violation::symlink_escape, path_of(id),
        fmt::format("links to \"{}\", which by way of other links is outside {}", entry_name(link.target),
                    boundary_of(id) == kRoot ? "the archive" : "rootfs/"));
  }
  return {};
}

}  // namespace pawl::images
