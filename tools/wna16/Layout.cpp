//===- Layout.cpp - wna16 layout ------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "LayoutParts.h"
#include "Picture.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace wna16;
using namespace wna16::cli;

namespace {

llvm::StringRef ref(std::string_view text) {
  return {text.data(), text.size()};
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// "0-7", "0 8 1 9": numbers in their order, consecutive ones shortened.
std::string shorten(llvm::ArrayRef<int64_t> values) {
  std::string text;
  for (size_t i = 0; i < values.size();) {
    size_t last = i;
    while (last + 1 < values.size() && values[last + 1] == values[last] + 1)
      ++last;
    // Two numbers are no shorter as a range.
    if (last == i + 1)
      last = i;
    text += (text.empty() ? "" : " ") + std::to_string(values[i]);
    if (last > i)
      text += "-" + std::to_string(values[last]);
    i = last + 1;
  }
  return text;
}

/// The coordinates of the first `units` addresses, axis by axis, in the order
/// in which they appear.
std::string contentsOf(const BitOrder &order, int64_t units) {
  std::array<std::vector<int64_t>, kNumAxes> seen;
  for (int64_t address = 0; address < units; ++address) {
    Coordinates at = coordinatesAt(order, address);
    for (int axis = 0; axis < kNumAxes; ++axis)
      if (!llvm::is_contained(seen[axis], at[axis]))
        seen[axis].push_back(at[axis]);
  }
  std::string text;
  for (Axis axis : {Axis::Input, Axis::Group, Axis::Half, Axis::Output}) {
    const std::vector<int64_t> &values = seen[static_cast<int>(axis)];
    if (!order.names(axis))
      continue;
    text += (text.empty() ? "" : ", ") +
            (values.size() > 1 ? plural(axis) : axisName(axis).str()) + " " +
            shorten(values);
  }
  return text;
}

std::string runsOf(const BitOrder &order) {
  std::string text;
  for (Axis axis : {Axis::Input, Axis::Group, Axis::Half, Axis::Output}) {
    if (!order.names(axis))
      continue;
    int64_t run = runLength(order, axis);
    std::string what = axisName(axis).str();
    text += text.empty() ? "" : ", ";
    text += run == 0
                ? "all " + plural(axis)
                : std::to_string(run) + " " + (run > 1 ? plural(axis) : what);
  }
  return text;
}

void printPart(const LayoutPart &part, llvm::raw_ostream &os) {
  const BitOrder &order = part.order;
  auto row = [&](llvm::StringRef name, const llvm::Twine &text) {
    os << "  " << llvm::left_justify(name, 16) << text << "\n";
  };
  os << "\n"
     << part.title << ", " << part.unitBits << " bits: " << part.notation
     << "\n";
  if (part.notation != order.str())
    row("* = block", "min(128, group) inputs; for 128: " + order.str());
  for (int64_t bits : {32, 128})
    if (bits > part.unitBits)
      row(std::to_string(bits) + "-bit vector",
          contentsOf(order, bits / part.unitBits));
  row("side by side", runsOf(order));
  if (int64_t tile = order.tileSize(); tile > 1) {
    std::string extents;
    for (Axis axis : {Axis::Input, Axis::Group, Axis::Half, Axis::Output})
      if (int64_t extent = order.tileExtent(axis); extent > 1)
        extents += (extents.empty() ? "" : " x ") + std::to_string(extent) +
                   " " + plural(axis);
    row("tile",
        llvm::Twine(extents) + ", " + llvm::Twine(tile * part.unitBits / 8) +
            " bytes" +
            (part.trailerBytes
                 ? " and " + llvm::Twine(part.trailerBytes).str() + " of sums"
                 : std::string()));
  }
  std::string then;
  for (Axis rest : order.rests())
    then += (then.empty() ? "" : ", then ") + plural(rest);
  row(order.tileSize() > 1 ? "next tiles" : "order", then);
}

/// The width that is shown when none is asked for.
int narrowest(const LayoutEntry &layout) {
  return *llvm::find_if(
      kWidths, [&](int bits) { return refusalOf(layout, bits).empty(); });
}

/// What the layout can hold.
std::string holdings(const LayoutEntry &layout) {
  std::string widths;
  for (int bits : kWidths)
    if (refusalOf(layout, bits).empty())
      widths += (widths.empty() ? "" : ", ") +
                (bits == kFloatBits ? std::string("floats")
                                    : std::to_string(bits) + "-bit codes");
  if (narrowest(layout) == kFloatBits)
    return widths;
  widths += layout.scaleType
                ? ", scales of " + std::string(name(*layout.scaleType))
                : ", scales of any type";
  if (layout.group)
    widths += ", groups of " + std::to_string(*layout.group);
  widths += layout.zeroShape == SideShape::None ? ", no zero points"
            : layout.needsZeros                 ? ", zero points always"
                                                : ", zero points or none";
  return widths + (layout.actOrder ? ", act-order" : ", no act-order");
}

void printRules(const LayoutEntry &layout, int bits, llvm::raw_ostream &os) {
  WeightSpec spec = exampleOf(layout, bits, 1);
  WeightSpec gated = exampleOf(layout, bits, 2);
  auto text = [](int64_t multiple) {
    return multiple == 1 ? std::string("any")
                         : "a multiple of " + std::to_string(multiple);
  };
  ExtentRule input = ruleOf(spec, &WeightSpec::input);
  int64_t output = ruleOf(spec, &WeightSpec::output).multiple;
  int64_t half = ruleOf(gated, &WeightSpec::output).multiple;
  os << "  input   " << text(input.multiple)
     << (input.wholeGroups ? ", and of the group" : "") << "\n"
     << "  output  " << text(output);
  if (half != output)
    os << "; of each half of gated weights " << text(half);
  os << "\n";
}

void print(const LayoutEntry &layout, int bits, llvm::raw_ostream &os) {
  os << ref(layout.name) << ": " << ref(layout.summary) << "\n"
     << "  in C    WNA16_LAYOUT_" << ref(layout.name).upper() << ", "
     << layout.id << "\n"
     << "  holds   " << holdings(layout) << "\n";
  printRules(layout, bits, os);
  for (const LayoutPart &part : partsOf(layout, bits))
    printPart(part, os);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Failure writeFile(llvm::StringRef file, llvm::StringRef text) {
  std::error_code error;
  llvm::ToolOutputFile output(file, error, llvm::sys::fs::OF_None);
  if (error)
    return fail(("cannot write " + file + ": " + error.message()).str());
  llvm::raw_fd_ostream &os = output.os();
  os << text;
  os.flush();
  if (os.has_error()) {
    std::string message = os.error().message();
    os.clear_error();
    return fail(("cannot write " + file + ": " + message).str());
  }
  output.keep();
  return ok();
}

/// One picture for each layout and width.
Failure drawAll(llvm::StringRef folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return fail(("cannot create " + folder + ": " + error.message()).str());
  for (const LayoutEntry &layout : allLayouts())
    for (int bits : kWidths) {
      if (!refusalOf(layout, bits).empty())
        continue;
      std::string file =
          llvm::formatv("{0}/{1}-{2}.svg", folder, ref(layout.name), bits);
      if (Failure failure = writeFile(file, drawLayout(layout, bits)))
        return failure;
    }
  return ok();
}

Result<int> runAll(const Arguments &arguments) {
  if (arguments.has("--svg"))
    if (Failure failure = drawAll(arguments.get("--svg")))
      return failure;
  if (!arguments.has("--svg"))
    for (const LayoutEntry &layout : allLayouts())
      llvm::outs() << llvm::left_justify(ref(layout.name), 24)
                   << ref(layout.summary) << "\n";
  return 0;
}

Result<int> run(const Arguments &arguments) {
  if (arguments.input() == "all")
    return runAll(arguments);
  const LayoutEntry *layout = findLayout(arguments.input());
  if (!layout)
    return usage("unknown layout '" + arguments.input() +
                 "'; the layouts are " +
                 llvm::join(llvm::map_range(allLayouts(),
                                            [](const LayoutEntry &entry) {
                                              return ref(entry.name);
                                            }),
                            ", "));
  Result<int64_t> given = arguments.integer("--bits", 0, 4);
  if (!given)
    return given.takeFailure();
  int bits = *given ? static_cast<int>(*given) : narrowest(*layout);
  if (std::string refusal = refusalOf(*layout, bits); !refusal.empty())
    return usage(refusal);
  if (!arguments.has("--svg")) {
    print(*layout, bits, llvm::outs());
    return 0;
  }
  if (Failure failure =
          writeFile(arguments.get("--svg"), drawLayout(*layout, bits)))
    return failure;
  return 0;
}

constexpr Option kOptions[] = {
    {"--bits", "B",
     "codes of 4 or 8 bits, or floats of 16 (default: the "
     "narrowest)",
     "4|8|16"},
    {"--svg", "FILE", "draw it instead; for 'all': a folder"},
};

} // namespace

const Command cli::layoutCommand = {
    "layout",
    "NAME",
    "print or draw where a layout stores what",
    "NAME is a layout of the catalogue, or 'all' for their list. Prints the "
    "bit\n"
    "orders of codes, scales, zero points and bias with what follows from "
    "them:\n"
    "tiles, multiples, what a word and a vector hold, and which neighbours "
    "lie\n"
    "side by side. k is the input, n the output, s the half (u = 1 - s), g "
    "the\n"
    "group; a capital letter is the rest of that axis.\n",
    kOptions,
    run,
};
