// SPDX-License-Identifier: Apache-2.0
// Completions for shells.
#include <fmt/format.h>

#include "cli/manual.hpp"

namespace pawl::cli {
namespace {

/// Every command with the words that lead to it: "", "store", "store info", …
template <class Visit>
void walk(const Command& command, const std::string& path, Visit visit) {
  visit(path, command);
  for (const auto& verb : command.verbs) walk(verb, path.empty() ? verb.name : path + " " + verb.name, visit);
}

/// For a word between single quotes.
std::string shell_quoted(std::string_view text) {
  std::string made;
  for (const char byte : text) made += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  return made;
}

bool takes_file(const CommandOption& option) { return option.value == "FILE" || option.value == "STORE"; }

/// What can stand after a command: its verbs, its options, the choices of its arguments.
std::vector<std::string> words_of(const Command& command) {
  std::vector<std::string> words;
  for (const auto& verb : command.verbs) words.push_back(verb.name);
  for (const auto& option : command.options) {
    if (option.positional) {
      words.insert(words.end(), option.choices.begin(), option.choices.end());
    } else {
      words.push_back(option.names.back());
    }
  }
  return words;
}

/// Which words lead to a verb; both bash and zsh find their way with it.
std::string paths(const Command& root) {
  std::string made;
  walk(root, "", [&](const std::string& path, const Command&) {
    if (!path.empty()) made += fmt::format("{}'{}'", made.empty() ? "" : "|", shell_quoted(path));
  });
  return made;
}

std::string bash(const Command& root) {
  std::string words;
  std::string values;
  walk(root, "", [&](const std::string& path, const Command& command) {
    words += fmt::format("    '{}') words='{}' ;;\n", shell_quoted(path),
                         shell_quoted(fmt::format("{}", fmt::join(words_of(command), " "))));
    for (const auto& option : command.options) {
      if (option.positional || (option.choices.empty() && !takes_file(option))) continue;
      for (const auto& name : option.names) {
        values +=
            takes_file(option)
                ? fmt::format("    '{} {}') COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n", path,
                              name)
                : fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                              path, name, fmt::join(option.choices, " "));
      }
    }
  });
  return fmt::format(R"(# bash completion of pawl; made by `pawl completion bash`.
_pawl() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" path='' word words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{path:+$path }}${{COMP_WORDS[i]}}"
    case "$word" in {}) path="$word" ;; esac
  done
  case "$path $previous" in
{}  esac
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _pawl pawl
)",
                     paths(root), values, words);
}

/// Between single quotes, where _describe takes a colon for the end of the word.
std::string described(std::string_view word, std::string_view description) {
  std::string escaped;
  for (const char byte : word) escaped += byte == ':' ? std::string("\\:") : std::string(1, byte);
  return fmt::format("'{}:{}'", shell_quoted(escaped), shell_quoted(description));
}

std::string zsh(const Command& root) {
  std::string words;
  walk(root, "", [&](const std::string& path, const Command& command) {
    words += fmt::format("    '{}') entries=(", shell_quoted(path));
    for (const auto& verb : command.verbs) words += described(verb.name, verb.description) + " ";
    for (const auto& option : command.options) {
      if (option.positional) {
        for (const auto& choice : option.choices) words += described(choice, option.description) + " ";
      } else {
        words += described(option.names.back(), option.description) + " ";
      }
    }
    words += ") ;;\n";
  });
  return fmt::format(R"(#compdef pawl
# zsh completion of pawl; made by `pawl completion zsh`.
_pawl() {{
  local way='' word i
  local -a entries
  for ((i = 2; i < CURRENT; i++)); do
    word="${{way:+$way }}${{words[i]}}"
    case "$word" in {}) way="$word" ;; esac
  done
  case "$way" in
{}  esac
  _describe 'pawl' entries || _files
}}
compdef _pawl pawl
)",
                     paths(root), words);
}

std::string fish(const Command& root) {
  std::string made = R"(# fish completion of pawl; made by `pawl completion fish`.
function __pawl_at
    set -l path
    for word in (commandline -opc)[2..]
        string match -q -- '-*' $word; or set -a path $word
    end
    set -l wanted (string split ' ' -- $argv[1])
    test "$argv[1]" = ''; and set wanted
    test (count $path) -ge (count $wanted); or return 1
    for i in (seq (count $wanted))
        test "$path[$i]" = "$wanted[$i]"; or return 1
    end
end
function __pawl_just
    __pawl_at $argv[1]; or return 1
    set -l words (string match -v -- '-*' (commandline -opc)[2..])
    test (count $words) -eq (count (string split -n ' ' -- $argv[1]))
end
complete -c pawl -f
)";
  walk(root, "", [&](const std::string& path, const Command& command) {
    for (const auto& verb : command.verbs) {
      made += fmt::format("complete -c pawl -n \"__pawl_just '{}'\" -a '{}' -d '{}'\n", path,
                          shell_quoted(verb.name), shell_quoted(verb.description));
    }
    for (const auto& option : command.options) {
      if (option.positional) {
        if (!option.choices.empty()) {
          made += fmt::format("complete -c pawl -n \"__pawl_just '{}'\" -a '{}'\n", path,
                              fmt::join(option.choices, " "));
        }
        continue;
      }
      std::string flags;
      for (const auto& name : option.names) {
        flags += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.empty()) flags += takes_file(option) ? " -r -F" : " -x";
      if (!option.choices.empty()) flags += fmt::format(" -a '{}'", fmt::join(option.choices, " "));
      made += fmt::format("complete -c pawl -n \"__pawl_at '{}'\"{} -d '{}'\n", path, flags,
                          shell_quoted(option.description));
    }
  });
  return made;
}

}  // namespace

Result<std::string> completion(const Command& root, const std::string& shell) {
  if (shell == "bash") return bash(root);
  if (shell == "zsh") return zsh(root);
  if (shell == "fish") return fish(root);
  return fail(Code::unknown_name,
              fmt::format("no completion for \"{}\"; there is one for bash, zsh and fish", shell));
}

}  // namespace pawl::cli
