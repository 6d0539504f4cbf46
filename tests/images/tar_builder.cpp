// SPDX-License-Identifier: Apache-2.0
#include "tests/images/tar_builder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "images/archive/descriptor.hpp"
#include "images/names.hpp"

namespace pawl::images {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 512;

void put(std::string& block, std::size_t at, std::size_t size, std::string_view text) {
  block.replace(at, std::min(size, text.size()), text.substr(0, size));
}

void put_octal(std::string& block, std::size_t at, std::size_t size, std::uint64_t number) {
  put(block, at, size, fmt::format("{:0{}o}", number, size - 1));
}

std::string file_content(const fs::path& path) {
  std::string content(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(content.data(), static_cast<std::streamsize>(content.size()));
  return content;
}

std::string extended_attributes(const fs::path& path) {
  std::array<char, 4096> names{};
  const auto size = ::llistxattr(path.c_str(), names.data(), names.size());
  std::set<std::string> lines;
  for (std::string_view rest(names.data(), size < 0 ? 0 : static_cast<std::size_t>(size)); !rest.empty();) {
    const std::string key(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(key.size() + 1);
    std::array<char, 4096> value{};
    const auto got = ::lgetxattr(path.c_str(), key.c_str(), value.data(), value.size());
    lines.insert(
        fmt::format("{}={:02x}", key, fmt::join(value.data(), value.data() + std::max<ssize_t>(got, 0), "")));
  }
  return fmt::format("{}", fmt::join(lines, ","));
}

}  // namespace

TarBuilder& TarBuilder::header(const RawHeader& header) {
  std::string block(kBlock, '\0');
  put(block, 0, 100, header.name);
  put_octal(block, 100, 8, header.mode);
  put_octal(block, 108, 8, header.uid);
  put_octal(block, 116, 8, header.gid);
  put_octal(block, 124, 12, header.size);
  if (!header.size_field.empty()) put(block, 124, 12, header.size_field);
  put_octal(block, 136, 12, header.mtime);
  put(block, 148, 8, "        ");
  block[156] = header.type;
  put(block, 157, 100, header.link);
  put(block, 257, 8, header.magic);
  put_octal(block, 329, 8, header.major);
  put_octal(block, 337, 8, header.minor);
  put(block, 345, 155, header.prefix);
  const auto sum = std::accumulate(block.begin(), block.end(), header.wrong_by,
                                   [](int so_far, char c) { return so_far + static_cast<unsigned char>(c); });
  put(block, 148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return raw(block);
}

TarBuilder& TarBuilder::file(std::string name, std::string_view content, std::uint32_t mode) {
  return header({.name = std::move(name), .mode = mode, .size = content.size()}).body(content);
}

TarBuilder& TarBuilder::directory(std::string name, std::uint32_t mode) {
  return header({.name = std::move(name), .type = '5', .mode = mode});
}

TarBuilder& TarBuilder::symlink(std::string name, std::string target) {
  return header({.name = std::move(name), .type = '2', .mode = 0777, .link = std::move(target)});
}

TarBuilder& TarBuilder::hardlink(std::string name, std::string target) {
  return header({.name = std::move(name), .type = '1', .link = std::move(target)});
}

TarBuilder& TarBuilder::extension(char type, std::string_view content) {
  return header({.name = "extension", .type = type, .size = content.size()}).body(content);
}

TarBuilder& TarBuilder::pax(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string text;
  for (const auto& [key, value] : records) text += pax_record(key, value);
  return extension('x', text);
}

TarBuilder& TarBuilder::body(std::string_view bytes) {
  bytes_ += bytes;
  bytes_.resize((bytes_.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return *this;
}

TarBuilder& TarBuilder::raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

TarBuilder& TarBuilder::end() { return raw(std::string(2 * kBlock, '\0')); }

std::string pax_record(std::string_view key, std::string_view value) {
  const auto rest = key.size() + value.size() + 3;
  auto size = rest + 1;
  while (rest + std::to_string(size).size() != size) ++size;
  return fmt::format("{} {}={}\n", size, key, value);
}

ArchivePlace::ArchivePlace(Kind kind) {
  const fs::path memory = "/dev/shm";
  const bool in_memory = kind == Kind::memory && ::access(memory.c_str(), W_OK) == 0;
  auto pattern = ((in_memory ? memory : fs::temp_directory_path()) / "pawl-archive-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  top_ = pattern;
  fs::create_directory(root());
  fs::create_directory(canary());
  std::ofstream(canary() / "keep") << "untouched";
}

ArchivePlace::~ArchivePlace() {
  std::error_code ignored;
  fs::remove_all(top_, ignored);
}

void ArchivePlace::write(std::string_view bytes) const {
  std::ofstream(archive(), std::ios::binary) << bytes;
}

Result<ArchiveStats> ArchivePlace::unpack(const ArchiveOptions& options) const {
  const Descriptor opened(::open(root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return extract(archive(), opened.get(), options);
}

void ArchivePlace::clear() const {
  fs::remove_all(root());
  fs::create_directory(root());
}

std::string ArchivePlace::outside() const {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(top_)) found.insert(entry.path().filename());
  found.erase("archive.tar");
  if (found != std::set<std::string>{"canary", "root"})
    return fmt::format("beside: {}", fmt::join(found, " "));
  found.clear();
  for (const auto& entry : fs::directory_iterator(canary())) found.insert(entry.path().filename());
  if (found != std::set<std::string>{"keep"}) return fmt::format("in canary: {}", fmt::join(found, " "));
  if (fs::hard_link_count(canary() / "keep") != 1) return "canary/keep has another name";
  return file_content(canary() / "keep") == "untouched" ? "" : "canary/keep was changed";
}

int run_command(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  auto copies = arguments;
  for (auto& argument : copies) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ) != 0) return -1;
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int in_child(const std::function<int()>& body) {
  const auto child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> describe_tree(const fs::path& root) {
  std::map<std::string, fs::path> paths{{".", root}};
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    paths.emplace(entry.path().lexically_relative(root).string(), entry.path());
  }
  std::map<ino_t, std::string> first_names;
  std::vector<std::string> lines;
  for (const auto& [name, path] : paths) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) throw std::runtime_error("lstat " + path.string());
    const auto& same_as =
        S_ISDIR(status.st_mode) ? name : first_names.emplace(status.st_ino, name).first->second;
    std::string what;
    if (S_ISLNK(status.st_mode)) what = "-> " + fs::read_symlink(path).string();
    if (S_ISREG(status.st_mode)) {
      what = fmt::format("{} bytes {}", status.st_size, sha256_hex(file_content(path)).substr(0, 16));
    }
    if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) what = fmt::format("device {}", status.st_rdev);
    lines.push_back(fmt::format("{} {:o} {}:{} {}.{:09} same as {} [{}] {}", name, status.st_mode,
                                status.st_uid, status.st_gid, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                                same_as, extended_attributes(path), what));
  }
  return lines;
}

}  // namespace pawl::images
