// SPDX-License-Identifier: Apache-2.0
// Crashes, and copies of a whole disk.
#include <algorithm>
#include <unordered_map>

#include "store/sim_disk_state.hpp"

namespace pawl::sim {

namespace {

using Names = std::map<std::string, std::shared_ptr<Inode>, std::less<>>;

void assign(Names& names, const NameChange& change) {
  if (change.inode) {
    names.insert_or_assign(change.name, change.inode);
  } else {
    names.erase(change.name);
  }
}

}  // namespace

std::string_view directory_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

void DiskState::sync_names(std::string_view directory) {
  std::erase_if(name_changes_, [&](const NameChange& change) {
    if (directory_of(change.name) != directory) return false;
    assign(durable_names, change);
    return true;
  });
}

void DiskState::settle_names(Unsynced unsynced) {
  // A directory entry changes atomically: of the changes of one name, a prefix survives. Names are
  // independent.
  std::map<std::string_view, std::uint64_t> left;
  for (const NameChange& change : name_changes_) ++left[change.name];
  for (auto& [name, count] : left) {
    if (unsynced == Unsynced::keep_none) count = 0;
    if (unsynced == Unsynced::random) count = random_.below(count + 1);
  }
  for (const NameChange& change : name_changes_) {
    std::uint64_t& count = left[change.name];
    if (count == 0) continue;
    --count;
    assign(durable_names, change);
  }
  name_changes_.clear();
}

void DiskState::end_epoch() {
  ++epoch_;
  const auto let_go = [](const std::shared_ptr<Inode>& inode) {
    if (!inode) return;
    inode->handles.clear();
    inode->memory.reset();
  };
  for (const auto& [name, inode] : names) let_go(inode);
  for (const auto& [name, inode] : durable_names) let_go(inode);
  for (const auto& [name, inode] : name_changes_) let_go(inode);
}

void DiskState::cut_power(Unsynced unsynced) {
  end_epoch();
  settle_names(unsynced);
  names = durable_names;
  for (const auto& [name, inode] : names) {
    inode->content.settle(unsynced, random_);
    inode->content.drop_cache();
  }
}

std::shared_ptr<const DiskContent> DiskState::copy() const {
  auto content = std::make_shared<DiskContent>();
  std::unordered_map<const Inode*, std::size_t> numbers;
  const auto number = [&](const std::shared_ptr<Inode>& inode) {
    const auto [found, is_new] = numbers.try_emplace(inode.get(), content->files.size());
    if (is_new) content->files.push_back(inode->content);
    return found->second;
  };
  for (const auto& [name, inode] : names) content->names.emplace(name, number(inode));
  for (const auto& [name, inode] : durable_names) content->durable_names.emplace(name, number(inode));
  for (const auto& [name, inode] : name_changes_) {
    content->name_changes.emplace_back(name, inode ? std::optional(number(inode)) : std::nullopt);
  }
  return content;
}

void DiskState::replace(const DiskContent& content) {
  end_epoch();
  std::vector<std::shared_ptr<Inode>> inodes;
  for (const FileContent& file : content.files) {
    inodes.push_back(std::make_shared<Inode>());
    inodes.back()->content = file;
  }
  names.clear();
  durable_names.clear();
  name_changes_.clear();
  for (const auto& [name, number] : content.names) names.emplace(name, inodes[number]);
  for (const auto& [name, number] : content.durable_names) durable_names.emplace(name, inodes[number]);
  for (const auto& [name, number] : content.name_changes) {
    name_changes_.push_back({.name = name, .inode = number ? inodes[*number] : nullptr});
  }
}

}  // namespace pawl::sim
