// SPDX-License-Identifier: Apache-2.0
// The manual page, as roff.
#include "cli/manual.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace pawl::cli {
namespace {

/// Text as roff takes it: a backslash, a leading point or quote and a minus mean something there.
std::string roff(std::string_view text) {
  std::string made;
  for (const char byte : text) {
    if (made.empty() && (byte == '.' || byte == '\'')) made += "\\&";
    made += byte == '\\' ? "\\e" : byte == '-' ? "\\-" : std::string(1, byte);
  }
  return made;
}

std::string option_head(const CommandOption& option) {
  std::string head;
  for (const auto& name : option.names)
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", roff(name));
  if (!option.value.empty() && !option.positional) head += fmt::format(" \\fI{}\\fR", roff(option.value));
  return head;
}

std::string synopsis(const Command& command, const std::string& path) {
  auto text = fmt::format("\\fB{}\\fR", roff(path));
  for (const auto& option : command.options) {
    if (option.positional || !option.required) continue;
    text += fmt::format(" \\fB{}\\fR \\fI{}\\fR", roff(option.names.back()), roff(option.value));
  }
  for (const auto& option : command.options) {
    if (!option.positional) continue;
    const auto word = fmt::format("\\fI{}\\fR{}", roff(option.names.front()), option.many ? "…" : "");
    text += option.required ? " " + word : " [" + word + "]";
  }
  return text + " [options]";
}

/// Options that many verbs have are described once; how many have one of this name and meaning.
using Shared = std::map<std::pair<std::string, std::string>, int>;
constexpr int kMany = 6;

void count_options(const Command& command, Shared& shared) {
  for (const auto& option : command.options) {
    if (!option.positional) ++shared[{option.names.back(), option.description}];
  }
  for (const auto& verb : command.verbs) count_options(verb, shared);
}

void write_option(std::string& out, const CommandOption& option) {
  auto text = option.description;
  if (!option.choices.empty()) text += fmt::format(" ({})", fmt::join(option.choices, ", "));
  out += fmt::format(".TP\n{}\n{}\n", option_head(option), roff(text));
}

/// Each shared option where it is first met.
void write_shared(std::string& out, const Command& command, Shared shared) {
  const auto write = [&](const auto& self, const Command& at) -> void {
    for (const auto& option : at.options) {
      const auto found = shared.find({option.names.back(), option.description});
      if (found == shared.end() || found->second < kMany) continue;
      write_option(out, option);
      shared.erase(found);
    }
    for (const auto& verb : at.verbs) self(self, verb);
  };
  write(write, command);
}

void write_verb(std::string& out, const Command& command, const std::string& path, const Shared& shared) {
  if (!command.verbs.empty()) {
    for (const auto& verb : command.verbs) write_verb(out, verb, path + " " + verb.name, shared);
    return;
  }
  out += fmt::format(".SS \"{}\"\n.nh\n{}\n.hy\n.PP\n{}.\n", roff(path), synopsis(command, path),
                     roff(command.description));
  for (const auto& option : command.options) {
    const auto found = shared.find({option.names.back(), option.description});
    if (found == shared.end() || found->second < kMany) write_option(out, option);
  }
}

constexpr std::string_view kEnvironment = R"(.SH ENVIRONMENT
.TP
.B PAWL_URL
The server, where \-\-url is not given.
.TP
.B PAWL_TOKEN
The token, where \-\-token\-file is not given.
.TP
.B PAWL_CREDENTIALS
The credentials file: a line for each server, its address and a token. Only its owner may read it.
.TP
.B PAWL_CA
Who may sign the server's certificate, where \-\-ca is not given.
.TP
.B NO_COLOR
No colours, where it is set.
.SH EXIT STATUS
.TP
.B 0
done
.TP
.B 1
refused or failed; a store that was checked is damaged
.TP
.B 2
used wrongly: an unknown verb, option or argument
.TP
.B 3
the server could not be reached, or what answers is none
.TP
.B 4
not authorised: no token, a wrong one, or one whose role does not allow it
.TP
.B 5
not found: no such machine, state, event, instance or pool
.TP
.B 6
conflict: the instance's state, version or existence does not allow it
.TP
.B 130
ended by Ctrl\-C
.SH FILES
.TP
.I ~/.config/pawl/credentials
where \fBpawl login\fR keeps tokens
.TP
.I pawl.yaml
the configuration that \fBpawl serve\fR reads
)";

}  // namespace

std::string manual(const Command& root, const std::string& version) {
  auto out = fmt::format(".TH PAWL 1 \"\" \"pawl {}\" \"Pawl\"\n.SH NAME\npawl \\- durable lifecycles\n",
                         roff(version));
  out += fmt::format(
      ".SH SYNOPSIS\n\\fBpawl\\fR \\fIverb\\fR [options]\n.SH DESCRIPTION\n{}\n.PP\n"
      "Data goes to standard output, as a table for people or with \\fB\\-\\-json\\fR as one document; "
      "everything else goes to standard error.\n.SH VERBS\n",
      roff(root.description));
  Shared shared;
  count_options(root, shared);
  for (const auto& verb : root.verbs) write_verb(out, verb, "pawl " + verb.name, shared);
  out += ".SH OPTIONS OF MANY VERBS\n";
  write_shared(out, root, shared);
  return out + std::string(kEnvironment);
}

}  // namespace pawl::cli
