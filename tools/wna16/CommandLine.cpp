//===- CommandLine.cpp - Subcommands and their options --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

using namespace wna16;
using namespace wna16::cli;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

std::string Arguments::get(llvm::StringRef option,
                           llvm::StringRef otherwise) const {
  auto entry = values.find(option);
  return entry == values.end() ? otherwise.str() : entry->second.back();
}

std::vector<std::string> Arguments::all(llvm::StringRef option) const {
  auto entry = values.find(option);
  return entry == values.end() ? std::vector<std::string>() : entry->second;
}

static Result<int64_t> toInteger(llvm::StringRef option, llvm::StringRef text,
                                 int64_t least, int64_t most = INT64_MAX) {
  int64_t value;
  if (!text.getAsInteger(10, value) && least <= value && value <= most)
    return value;
  std::string range = "of at least " + std::to_string(least);
  if (most != INT64_MAX)
    range = "from " + std::to_string(least) + " to " + std::to_string(most);
  return usage(option + ": expected an integer " + range + ", got '" + text +
               "'");
}

Result<int64_t> Arguments::integer(llvm::StringRef option, int64_t otherwise,
                                   int64_t least, int64_t most) const {
  return has(option) ? toInteger(option, get(option), least, most)
                     : Result<int64_t>(otherwise);
}

Result<int64_t> cli::groupOf(const Arguments &arguments) {
  std::string text = arguments.get(kGroupOption.name, "128");
  int64_t group;
  if (text == "channel" || text == "-1")
    return -1;
  if (llvm::StringRef(text).getAsInteger(10, group) || group < 1)
    return usage("--group: expected a positive number, -1 or channel, got '" +
                 text + "'");
  return group;
}

Result<std::vector<int64_t>> cli::layerIndices(const Arguments &arguments) {
  std::vector<int64_t> indices;
  for (const std::string &text : arguments.all("--layer")) {
    Result<int64_t> index = toInteger("--layer", text, 0);
    if (!index)
      return index.takeFailure();
    indices.push_back(*index);
  }
  return indices;
}

Result<Rank> cli::rankOf(const Arguments &arguments) {
  if (!arguments.has(kRankOption.name))
    return Rank();
  std::string text = arguments.get(kRankOption.name);
  auto [left, right] = llvm::StringRef(text).split('/');
  Rank rank;
  if (left.getAsInteger(10, rank.rank) || right.getAsInteger(10, rank.size) ||
      rank.rank < 0 || rank.rank >= rank.size)
    return usage("--tp: expected RANK/SIZE with a rank from 0 to SIZE - 1, "
                 "got '" +
                 text + "'");
  return rank;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

static llvm::SmallVector<llvm::StringRef> choicesOf(const Option &option) {
  llvm::SmallVector<llvm::StringRef> choices;
  option.choices.split(choices, '|');
  return choices;
}

namespace wna16::cli {

/// Reads `--option value`, `--option=value`, flags and the positional argument.
class ArgumentParser {
public:
  ArgumentParser(const Command &command, llvm::ArrayRef<llvm::StringRef> given)
      : command(command), given(given) {}

  Failure parse(Arguments &arguments) {
    while (!given.empty()) {
      llvm::StringRef text = take();
      Failure failure = text.starts_with("-") && text != "-"
                            ? readOption(text, arguments)
                            : readPositional(text, arguments);
      if (failure)
        return failure;
    }
    if (arguments.positional.empty() && !command.positional.empty())
      return fail(("expected " + command.positional).str());
    for (const Option &option : command.options)
      if (option.required && !arguments.has(option.name))
        return fail(("expected " + option.name + " " + option.value).str());
    return ok();
  }

private:
  llvm::StringRef take() {
    llvm::StringRef text = given.front();
    given = given.drop_front();
    return text;
  }

  Failure readPositional(llvm::StringRef text, Arguments &arguments) {
    if (command.positional.empty())
      return fail(("expected options only, got '" + text + "'").str());
    if (!arguments.positional.empty())
      return fail(("expected one " + command.positional + ", got '" +
                   arguments.positional + "' and '" + text + "'")
                      .str());
    arguments.positional = text.str();
    return ok();
  }

  Failure readOption(llvm::StringRef text, Arguments &arguments) {
    auto [name, value] = text.split('=');
    auto option = llvm::find_if(command.options, [&](const Option &option) {
      return option.name == name;
    });
    if (option == command.options.end())
      return fail(("unknown option '" + name + "'; the options of wna16 " +
                   command.name + " are " + optionNames())
                      .str());
    bool hasValue = name.size() < text.size();
    if (option->value.empty() && hasValue)
      return fail((name + " takes no value, got '" + value + "'").str());
    if (!option->value.empty() && !hasValue && !given.empty())
      value = take();
    return addValue(*option, value, arguments.values[name]);
  }

  static Failure addValue(const Option &option, llvm::StringRef value,
                          std::vector<std::string> &values) {
    if (!option.value.empty() && value.empty())
      return fail(("expected " + option.name + " " + option.value).str());
    if (!option.choices.empty() && !isChoice(option, value))
      return fail((option.name + ": expected " +
                   llvm::join(choicesOf(option), ", ") + ", got '" + value +
                   "'")
                      .str());
    if (!option.value.empty() && !option.value.ends_with("...") &&
        !values.empty())
      return fail((option.name + " may be given once, got '" + values.back() +
                   "' and '" + value + "'")
                      .str());
    values.push_back(value.str());
    return ok();
  }

  static bool isChoice(const Option &option, llvm::StringRef value) {
    return llvm::is_contained(choicesOf(option), value);
  }

  std::string optionNames() const {
    std::string names;
    for (const Option &option : command.options)
      names += option.name.str() + ", ";
    return names + "--help";
  }

  const Command &command;
  llvm::ArrayRef<llvm::StringRef> given;
};

} // namespace wna16::cli

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// The files that a command given `path` may read: itself, or a checkpoint's.
static std::vector<std::string> filesOf(const std::string &path) {
  if (!llvm::sys::fs::is_directory(path))
    return {path};
  auto index =
      llvm::MemoryBuffer::getFile(path + "/model.safetensors.index.json");
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(path, error), end;
       it != end && !error; it.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    if (name.ends_with(".json") || name == "model.safetensors" ||
        (index && (*index)->getBuffer().contains(("\"" + name + "\"").str())))
      files.push_back(it->path());
  }
  return files;
}

/// Fails when the output is one of the inputs, by whatever name.
static Failure keepInputs(const Arguments &arguments) {
  std::string output = arguments.get("-o");
  llvm::sys::fs::UniqueID written;
  if (output.empty() || llvm::sys::fs::getUniqueID(output, written))
    return ok();
  std::vector<std::string> inputs = filesOf(arguments.input());
  for (const char *option : {"--reference", "--input", "--prepared"})
    for (const std::string &file : arguments.all(option))
      inputs.push_back(file);
  for (const std::string &input : inputs) {
    llvm::sys::fs::UniqueID read;
    if (!llvm::sys::fs::getUniqueID(input, read) && read == written)
      return fail("-o " + output + " would overwrite the input " + input +
                  "; name another file");
  }
  return ok();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static void printHelp(const Command &command) {
  llvm::raw_ostream &os = llvm::outs();
  os << "usage: wna16 " << command.name;
  if (!command.positional.empty())
    os << " " << command.positional;
  for (const Option &option : command.options)
    if (option.required)
      os << " " << option.name << " " << option.value;
  os << " [options]\n\n"
     << command.summary << "\n\n"
     << command.details << "\noptions:\n";
  for (const Option &option : command.options) {
    std::string left = option.name.str();
    if (!option.value.empty())
      left += " " + option.value.str();
    os << "  " << llvm::left_justify(left, 22) << " " << option.help << "\n";
    // Where the help does not name them itself.
    if (!option.choices.empty() &&
        llvm::any_of(choicesOf(option),
                     [&](auto one) { return !option.help.contains(one); }))
      os << std::string(25, ' ') << llvm::join(choicesOf(option), ", ") << "\n";
  }
  os << "  " << llvm::left_justify("--help", 22) << " show this\n";
}

static void printCommands(llvm::ArrayRef<const Command *> commands,
                          llvm::raw_ostream &os) {
  os << "usage: wna16 COMMAND ...\n\ncommands:\n";
  for (const Command *command : commands)
    os << "  " << llvm::left_justify(command->name, 10) << command->summary
       << "\n";
  os << "\n'wna16 COMMAND --help' shows the options of a command, "
        "'wna16 --version' the version\n"
        "The status is 2 for a bad command line or environment, whatever is "
        "in files;\n"
        "1 for any other failure, and for results out of tolerance.\n";
}

static int reportUsage(llvm::StringRef where, llvm::StringRef message) {
  llvm::WithColor::error(llvm::errs(), where) << message << "\n";
  return 2;
}

int cli::dispatch(llvm::ArrayRef<const Command *> commands, int argc,
                  const char *const *argv) {
  llvm::SmallVector<llvm::StringRef> given(argv + std::min(argc, 1),
                                           argv + argc);
  if (given.empty()) {
    printCommands(commands, llvm::errs());
    return 2;
  }
  if (given[0] == "--help" || given[0] == "-h") {
    printCommands(commands, llvm::outs());
    return 0;
  }
  if (given[0] == "--version") {
    llvm::outs() << "wna16 " << WNA16_VERSION << "\n";
    return 0;
  }
  auto command = llvm::find_if(commands, [&](const Command *candidate) {
    return candidate->name == given[0];
  });
  if (command == commands.end()) {
    std::string names = llvm::join(
        llvm::map_range(commands, [](const Command *c) { return c->name; }),
        ", ");
    return reportUsage("wna16", "unknown command '" + given[0].str() +
                                    "'; the commands are " + names);
  }
  std::string where = "wna16 " + (*command)->name.str();
  if (llvm::is_contained(given, "--help") || llvm::is_contained(given, "-h")) {
    printHelp(**command);
    return 0;
  }
  Arguments arguments;
  ArgumentParser parser(**command, llvm::ArrayRef(given).drop_front());
  if (Failure failure = parser.parse(arguments))
    return reportUsage(where, failure.message);
  if (Failure failure = keepInputs(arguments)) {
    llvm::WithColor::error(llvm::errs(), where) << failure.message << "\n";
    return 1;
  }
  Result<int> status = (*command)->run(arguments);
  if (status)
    return *status;
  llvm::StringRef message = status.message();
  if (message.consume_front(kUsageMark))
    return reportUsage(where, message);
  if (status.message() != reported().message)
    llvm::WithColor::error(llvm::errs(), where) << message << "\n";
  return 1;
}
