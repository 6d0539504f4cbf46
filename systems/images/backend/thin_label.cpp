// SPDX-License-Identifier: Apache-2.0
#include "images/backend/thin_label.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "images/backend/dm.hpp"
#include "images/backend/os.hpp"
#include "pawl/codec.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::string_view kLabelMagic = "pawl volume 1\n";
/// Where ext4 keeps its magic number and its UUID.
constexpr std::size_t kExt4Magic = 1024 + 0x38;
constexpr std::size_t kExt4Uuid = 1024 + 0x68;

std::string ext4_marker(std::string_view bytes) {
  if (bytes.substr(kExt4Magic, 2) != "\x53\xEF") return "";
  std::string text;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[kExt4Uuid + i]));
  }
  return text;
}

}  // namespace

Result<ThinFace> read_face(const std::string& device) {
  PAWL_TRY(const auto file, open_file(device, O_RDONLY));
  std::string bytes(kLabelRead, '\0');
  const auto count = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  if (count < 0) return fail(system_error("read", device));
  if (static_cast<std::size_t>(count) != bytes.size()) {
    return fail(Code::volume_failed, fmt::format("{} ends after {} bytes", device, count));
  }
  ThinFace face;
  face.blank = std::ranges::all_of(bytes, [](char c) { return c == 0; });
  face.ext4_marker = ext4_marker(bytes);
  const auto sector = std::string_view(bytes).substr(0, kSectorBytes);
  if (sector.starts_with(kLabelMagic)) {
    const auto text = sector.substr(kLabelMagic.size());
    if (auto label = decode<ThinLabel>(text.substr(0, text.find('\0')))) face.label = *std::move(label);
  }
  return face;
}

Result<void> write_label(const std::string& device, const Volume& volume) {
  PAWL_TRY(const auto json,
           encode(ThinLabel{
               .id = volume.id, .name = volume.name, .bytes = volume.bytes, .marker = volume.marker}));
  std::string sector = fmt::format("{}{}", kLabelMagic, json);
  sector.resize(kSectorBytes, '\0');
  PAWL_TRY(const auto file, open_file(device, O_WRONLY));
  if (::pwrite(file.get(), sector.data(), sector.size(), 0) != static_cast<ssize_t>(sector.size()) ||
      ::fsync(file.get()) != 0) {
    return fail(system_error("write the label of", device));
  }
  return {};
}

}  // namespace pawl::images::pools
