//===- Picture.cpp - Drawing a layout -------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Picture.h"

#include "LayoutParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace wna16;
using namespace wna16::cli;

namespace {

constexpr int kWidth = 800;
constexpr int kMargin = 24;
constexpr int kInner = kWidth - 2 * kMargin;
constexpr int kColours = 16;
constexpr int64_t kVectorBits = 128;
constexpr int64_t kWarp = 32;

/// Fills are translucent, so that they suit a light and a dark page alike.
constexpr llvm::StringLiteral kStyle = R"(
text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}
.c{text-anchor:middle}.m{font-family:ui-monospace,Menlo,Consolas,monospace}
.h{font-size:15px;font-weight:600}.H{font-size:20px;font-weight:650}
.q,.q tspan{fill:#59636e}.s{font-size:10px}
.p{fill:#fff;stroke:#d1d9e0}.l{fill:none;stroke:#8c959f}
.e{fill:none;stroke:#fff}.f{fill:none;stroke:#1f2328;stroke-width:1.6}
.K{fill:#0969da}.N{fill:#bc4c00}.S{fill:#1a7f37}.G{fill:#8250df}
.k{fill:#54aeff;stroke:#54aeff}.n{fill:#fb8f44;stroke:#fb8f44}
.h2{fill:#4ac26b;stroke:#4ac26b}.g{fill:#c297ff;stroke:#c297ff}
.v text{font:inherit;text-anchor:middle}.v{font:11px ui-monospace,Menlo,Consolas,monospace}
.b{fill-opacity:.3}.r{fill-opacity:.1;stroke-dasharray:3 3}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}.q,.q tspan{fill:#9198a1}.p{fill:#0d1117;stroke:#3d444d}
.l{stroke:#656c76}.e{stroke:#0d1117}.f{stroke:#e6edf3}
.K{fill:#79c0ff}.N{fill:#ffa657}.S{fill:#7ee787}.G{fill:#d2a8ff}}
)";

/// Classes by Axis: of boxes, of text.
constexpr llvm::StringLiteral kBoxClass[] = {"k", "n", "h2", "g"};
constexpr llvm::StringLiteral kTextClass[] = {"K", "N", "S", "G"};
constexpr llvm::StringLiteral kAxisLetter[] = {"k", "n", "s", "g"};

/// Colours follow the address; 0 .. count - 1 use all of them.
int64_t colour(int64_t index, int64_t count) {
  return index * kColours / std::max<int64_t>(count, 1) % kColours;
}

//===----------------------------------------------------------------------===//
// The map of a weight
//===----------------------------------------------------------------------===//

/// A weight just large enough for one tile and several vectors.
struct Window {
  int64_t inputs = 16;
  int64_t outputs = 32; ///< of all halves
  AddressMap map;
  int64_t halves = 1;
  int64_t vectorUnits = 1;

  explicit Window(const LayoutPart &part) : halves(part.halves) {
    vectorUnits = kVectorBits / part.unitBits;
    int64_t tileRows =
        part.order.tileExtent(Axis::Output) * part.order.tileExtent(Axis::Half);
    inputs = std::max(inputs, part.order.tileExtent(Axis::Input));
    outputs = std::max(outputs, tileRows);
    if (runLength(part.order, Axis::Input) == 0)
      inputs = std::max(inputs, vectorUnits);
    map = AddressMap(part.order, inputs, halves, outputs / halves, 1,
                     part.trailerBytes * 8 / part.unitBits);
  }

  int64_t vectorOf(int64_t k, int64_t row) const {
    return (map.input(k) + map.row(row)) / vectorUnits;
  }
  int64_t vectors() const { return inputs * outputs / vectorUnits; }
};

/// Neighbours of one vector, as one rectangle.
struct Cell {
  int64_t vector, first, last;
};

std::vector<Cell> cellsOf(const Window &window, int64_t k) {
  std::vector<Cell> cells;
  int64_t half = window.outputs / window.halves;
  for (int64_t row = 0; row < window.outputs; ++row) {
    int64_t vector = window.vectorOf(k, row);
    // Halves are drawn apart.
    bool joins =
        !cells.empty() && cells.back().vector == vector && row % half != 0;
    if (joins)
      cells.back().last = row + 1;
    else
      cells.push_back({vector, row, row + 1});
  }
  return cells;
}

/// Rows that lie in the same vectors.
struct Band {
  std::vector<Cell> cells;
  int64_t first, last;
};

std::vector<Band> bandsOf(const Window &window) {
  auto same = [](const std::vector<Cell> &a, const std::vector<Cell> &b) {
    return llvm::equal(a, b, [](const Cell &x, const Cell &y) {
      return x.vector == y.vector && x.first == y.first && x.last == y.last;
    });
  };
  std::vector<Band> bands;
  for (int64_t k = 0; k < window.inputs; ++k) {
    std::vector<Cell> cells = cellsOf(window, k);
    if (!bands.empty() && same(bands.back().cells, cells))
      bands.back().last = k + 1;
    else
      bands.push_back({std::move(cells), k, k + 1});
  }
  return bands;
}

/// Where the map draws its cells.
struct Grid {
  static constexpr int kLeft = kMargin + 44, kHalfGap = 16;
  int cellWidth, cellHeight;
  int64_t half; ///< columns of one half

  Grid(const Window &window, int64_t thinnestBand)
      : half(window.outputs / window.halves) {
    int64_t room = kWidth - kMargin - kLeft - kHalfGap * (window.halves - 1);
    cellWidth = static_cast<int>(room / window.outputs);
    // High enough for a number in each band.
    cellHeight =
        static_cast<int>(std::max({int64_t(1), 192 / window.inputs,
                                   (12 + thinnestBand - 1) / thinnestBand}));
  }
  int x(int64_t row) const {
    return kLeft + static_cast<int>(row * cellWidth + row / half * kHalfGap);
  }
  int y(int64_t k) const { return static_cast<int>(k) * cellHeight; }
};

//===----------------------------------------------------------------------===//
// Drawing
//===----------------------------------------------------------------------===//

/// A coloured rectangle with a short text.
struct Box {
  int x, y, width, height;
  int64_t colour;
  std::string label;
};

/// A document that grows downwards.
class Drawing {
public:
  explicit Drawing(const LayoutEntry &layout, int bits)
      : layout(layout), bits(bits), os(body) {}

  std::string draw();

private:
  using Twine = llvm::Twine;

  void text(int x, int y, llvm::StringRef classes, const Twine &content) {
    os << "<text x=\"" << x << "\" y=\"" << y << "\" class=\"" << classes
       << "\">" << content << "</text>\n";
  }
  /// At most one decimal, none where it is 0.
  static std::string number(double value) {
    std::string text = llvm::formatv("{0:f1}", value);
    return llvm::StringRef(text).ends_with(".0")
               ? text.substr(0, text.size() - 2)
               : text;
  }

  int drawStrip(const LayoutPart &part, int x, int y, int box);
  void drawBracket(int x, int y, int width, const Twine &content);
  void drawCodes(const LayoutPart &part);
  void drawVector(const LayoutPart &part);
  void drawMap(const LayoutPart &part);
  void drawBoxes(llvm::ArrayRef<Box> boxes, double size);
  void drawBand(const Band &band, const Window &window, const Grid &grid);
  void drawSides(llvm::ArrayRef<LayoutPart> parts);
  int drawSide(const LayoutPart &part, int x, int y);

  const LayoutEntry &layout;
  int bits;
  std::string body;
  llvm::raw_string_ostream os;
  int y = 0;
};

//===----------------------------------------------------------------------===//
// The strip of address bits
//===----------------------------------------------------------------------===//

void Drawing::drawBracket(int x, int y, int width, const Twine &content) {
  os << "<path class=\"l\" d=\"M" << x + 2 << " " << y << "v4h" << width - 4
     << "v-4\"/>\n";
  text(x + width / 2, y + 15, "c s q", content);
}

/// Returns the y below it.
int Drawing::drawStrip(const LayoutPart &part, int x, int y, int box) {
  constexpr int kHeight = 24, kGap = 3;
  int step = box + kGap, at = x;
  int64_t bit = 0;
  for (BitOrder::Bit one : part.order.bits()) {
    auto axis = static_cast<int>(one.axis);
    std::string name = one.axis == Axis::Half ? (one.inverted ? "u" : "s")
                                              : kAxisLetter[axis].str() +
                                                    std::to_string(one.index);
    text(at + box / 2, y + 9, "c s q m", Twine(bit++));
    os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" "
                        "height=\"{3}\" rx=\"4\" class=\"b {4}\"/>\n",
                        at, y + 14, box, kHeight, kBoxClass[axis]);
    text(at + box / 2, y + 30, "c m", name);
    at += step;
  }
  for (Axis rest : part.order.rests()) {
    auto axis = static_cast<int>(rest);
    os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" "
                        "height=\"{3}\" rx=\"4\" class=\"r {4}\"/>\n",
                        at, y + 14, box + 8, kHeight, kBoxClass[axis]);
    text(at + box / 2 + 4, y + 30, "c m", kTextClass[axis]);
    at += step + 8;
  }
  // What the lowest bits count within.
  int below = y + 14 + kHeight + 4;
  auto tileBits = static_cast<int64_t>(part.order.bits().size());
  auto levelOf = [&](int64_t bits) {
    return static_cast<int64_t>(
        llvm::Log2_64(std::max<int64_t>(1, bits / part.unitBits)));
  };
  struct {
    int64_t bits;
    std::string name;
  } const levels[] = {
      {part.isCodes ? levelOf(32) : 0, "32-bit word"},
      {levelOf(kVectorBits) < tileBits ? levelOf(kVectorBits) : 0,
       box < 30 && levelOf(kVectorBits) < 3 ? "128 bits" : "128-bit vector"},
      {tileBits, part.trailerBytes
                     ? llvm::formatv("tile, and {0} bytes of sums after it",
                                     part.trailerBytes)
                           .str()
                     : "tile"}};
  for (const auto &[bits, name] : levels) {
    if (bits < 2 || bits > tileBits)
      continue;
    drawBracket(x, below, static_cast<int>(bits) * step - kGap, name);
    below += 20;
  }
  return below + 4;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// "k 8 n 16", the axes in their colours.
std::string coordinateText(const LayoutPart &part, const Coordinates &at) {
  std::string text;
  for (Axis axis : {Axis::Input, Axis::Group, Axis::Half, Axis::Output}) {
    auto index = static_cast<int>(axis);
    if (!part.order.names(axis))
      continue;
    text += text.empty() ? "" : " ";
    text += llvm::formatv("<tspan class=\"{0}\">{1}{2}</tspan>",
                          kTextClass[index], kAxisLetter[index], at[index]);
  }
  return text;
}

/// The first 128 bits, one word a row.
void Drawing::drawVector(const LayoutPart &part) {
  constexpr int kHeight = 24, kLeft = 44;
  int columns = 32 / part.unitBits;
  int width = (kInner - kLeft) / columns;
  text(kMargin, y + 12, "q", "The first 128 bits, lowest bits of a word first");
  y += 22;
  for (int column = 0; column < columns; ++column)
    text(kMargin + kLeft + column * width + width / 2, y + 10, "c s q",
         Twine("bits ") + Twine(column * part.unitBits) + "\u2013" +
             Twine((column + 1) * part.unitBits - 1));
  y += 16;
  int64_t words = kVectorBits / 32;
  for (int64_t word = 0; word < words; ++word, y += kHeight + 3) {
    text(kMargin, y + 16, "q", Twine("word ") + Twine(word));
    for (int column = 0; column < columns; ++column) {
      int x = kMargin + kLeft + column * width;
      os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" "
                          "height=\"{3}\" rx=\"3\" class=\"b c{4}\"/>\n",
                          x, y, width - 3, kHeight, colour(word, words));
      text(x + width / 2 - 1, y + 16, "c m",
           coordinateText(part,
                          coordinatesAt(part.order, word * columns + column)));
    }
  }
  y += 10;
}

/// Boxes of one size of text: one path for each colour, then the labels.
void Drawing::drawBoxes(llvm::ArrayRef<Box> boxes, double size) {
  std::map<int64_t, std::string> paths;
  for (const Box &box : boxes)
    paths[box.colour] += llvm::formatv("M{0} {1}h{2}v{3}h-{2}z", box.x, box.y,
                                       box.width, box.height)
                             .str();
  for (const auto &[colour, path] : paths)
    os << "<path class=\"b e c" << colour << "\" d=\"" << path << "\"/>";
  os << "<g class=\"v\" style=\"font-size:" << number(size) << "px\">";
  for (const Box &box : boxes)
    os << "<text x=\"" << number(box.x + box.width / 2.0) << "\" y=\""
       << number(box.y + box.height / 2.0 + 0.35 * size) << "\">" << box.label
       << "</text>";
  os << "</g>\n";
}

void Drawing::drawBand(const Band &band, const Window &window,
                       const Grid &grid) {
  int height = grid.y(band.last - band.first);
  std::vector<Box> boxes;
  double size = std::min(11.0, height - 1.5);
  for (const Cell &cell : band.cells) {
    auto width = static_cast<int>((cell.last - cell.first) * grid.cellWidth);
    std::string name = std::to_string(cell.vector);
    size = std::min(size, (width - 1) / (0.64 * double(name.size())));
    boxes.push_back({grid.x(cell.first), 0, width, height,
                     colour(cell.vector, window.vectors()), std::move(name)});
  }
  drawBoxes(boxes, size);
}

/// Which vector holds which code: inputs downwards, outputs to the right.
void Drawing::drawMap(const LayoutPart &part) {
  Window window(part);
  std::vector<Band> bands = bandsOf(window);
  int64_t thinnest = window.inputs;
  for (const Band &band : bands)
    thinnest = std::min(thinnest, band.last - band.first);
  Grid grid(window, thinnest);
  bool oneTile = window.inputs * window.outputs == part.order.tileSize();
  text(kMargin, y + 12, "q",
       Twine("Which 128-bit vector holds which code of ") +
           Twine(window.inputs) + " inputs by " + Twine(window.outputs) +
           " outputs" +
           (!oneTile ? ""
            : window.vectors() == kWarp
                ? ", one tile: what each lane of a warp loads"
                : ", one tile"));
  y += 24;
  for (int64_t row = 0; row < window.outputs; row += 8) {
    bool named = window.halves > 1 && row % grid.half == 0;
    text(grid.x(row), y + 10, "s N m",
         Twine(!named     ? ""
               : row == 0 ? "gate "
                          : "up ") +
             "n" + Twine(row % grid.half));
  }
  y += 16;
  std::map<std::string, int> drawn;
  int64_t tick = std::max<int64_t>(window.inputs / 8, 1);
  for (const Band &band : bands) {
    int top = y + grid.y(band.first), height = grid.y(band.last - band.first);
    if (band.first % tick == 0 || bands.size() <= 8)
      text(kMargin, top + std::min(height / 2 + 4, 14), "s K m",
           Twine("k") + Twine(band.first));
    // A band like one that is drawn already is a copy of it.
    std::string key = std::to_string(height);
    for (const Cell &cell : band.cells)
      key += llvm::formatv(" {0}:{1}", cell.vector, cell.last).str();
    auto [entry, isNew] = drawn.try_emplace(key, top);
    if (!isNew) {
      os << llvm::formatv("<use href=\"#y{0}\" y=\"{1}\"/>\n", entry->second,
                          top - entry->second);
      continue;
    }
    os << llvm::formatv("<g id=\"y{0}\"><g transform=\"translate(0 {0})\">",
                        top);
    drawBand(band, window, grid);
    os << "</g></g>\n";
  }
  y += grid.y(window.inputs) + 14;
}

void Drawing::drawCodes(const LayoutPart &part) {
  text(kMargin, y + 14, "h",
       part.title + ", " + Twine(part.unitBits) + " bits");
  y = drawStrip(part, kMargin, y + 22, 36) + 6;
  drawVector(part);
  drawMap(part);
  y += 12;
}

//===----------------------------------------------------------------------===//
// Scales, zero points, bias
//===----------------------------------------------------------------------===//

/// What lies at an address, by the axes of which a tile has several.
std::string sideLabel(const BitOrder &order, const Coordinates &at) {
  std::string text;
  for (Axis axis : {Axis::Group, Axis::Half, Axis::Output})
    if (auto index = static_cast<int>(axis); order.tileExtent(axis) > 1)
      text += (text.empty() ? "" : " ") + kAxisLetter[index].str() +
              std::to_string(at[index]);
  return text;
}

/// Returns the y below it.
int Drawing::drawSide(const LayoutPart &part, int x, int y) {
  constexpr int kRoom = 352, kHeight = 20, kMostRows = 8;
  const BitOrder &order = part.order;
  text(x, y + 14, "h", part.title + ", " + Twine(part.unitBits) + " bits");
  y = drawStrip(part, x, y + 22, 28) + 2;
  if (order.tileSize() == 1) {
    std::string then;
    for (Axis rest : order.rests())
      then += (then.empty() ? "all " : ", for each of the ") + plural(rest);
    text(x, y + 10, "q", then);
    return y + 28;
  }
  // Longer labels need wider boxes.
  bool plain = order.tileSize() == order.tileExtent(Axis::Output);
  int columns = plain ? 8 : 4;
  int64_t units = std::min<int64_t>(order.tileSize(), columns * kMostRows);
  std::vector<Box> boxes;
  for (int64_t unit = 0; unit < units; ++unit) {
    Coordinates at = coordinatesAt(order, unit);
    int width = kRoom / columns;
    boxes.push_back({x + static_cast<int>(unit % columns) * width,
                     y + static_cast<int>(unit / columns) * kHeight, width,
                     kHeight,
                     colour(at[static_cast<int>(Axis::Output)],
                            order.tileExtent(Axis::Output)),
                     sideLabel(order, at)});
  }
  drawBoxes(boxes, 11.5);
  y = boxes.back().y + kHeight;
  if (units < order.tileSize()) {
    text(x, y + 14, "s q",
         Twine("the first ") + Twine(units) + " of " + Twine(order.tileSize()));
    y += 16;
  }
  return y + 22;
}

/// Two abreast.
void Drawing::drawSides(llvm::ArrayRef<LayoutPart> parts) {
  for (size_t i = 0; i < parts.size(); i += 2) {
    int below = drawSide(parts[i], kMargin, y);
    if (i + 1 < parts.size())
      below =
          std::max(below, drawSide(parts[i + 1], kMargin + kInner / 2 + 12, y));
    y = below;
  }
}

//===----------------------------------------------------------------------===//
// The document
//===----------------------------------------------------------------------===//

std::string Drawing::draw() {
  std::vector<LayoutPart> parts = partsOf(layout, bits);
  std::string name(layout.name), summary(layout.summary);
  text(kMargin, 38, "H", name);
  text(kMargin, 58, "q", summary);
  os << "<text x=\"" << kWidth - kMargin
     << "\" y=\"38\" class=\"q s\" text-anchor=\"end\">k input, n output, s "
        "half (u = 1 \u2212 s), g group; dashed: the rest of an axis</text>\n";
  y = 76;
  std::vector<LayoutPart> sides;
  for (const LayoutPart &part : parts) {
    if (part.isCodes)
      drawCodes(part);
    else
      sides.push_back(part);
  }
  drawSides(sides);
  y += 4;

  std::string document;
  llvm::raw_string_ostream out(document);
  out << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                       "viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                       "height=\"{1}\" role=\"img\">\n",
                       kWidth, y)
      << "<title>Layout " << name << ": " << summary << "</title>\n<style>"
      << kStyle;
  for (int i = 0; i < kColours; ++i)
    out << llvm::formatv(".c{0}{{fill:hsl({1} 85% 50%)}", i,
                         (205 + i * 300 / kColours) % 360);
  out << "\n</style>\n"
      << llvm::formatv("<rect x=\".5\" y=\".5\" width=\"{0}\" height=\"{1}\" "
                       "rx=\"10\" class=\"p\"/>\n",
                       kWidth - 1, y - 1)
      << body << "</svg>\n";
  return document;
}

} // namespace

std::string cli::drawLayout(const LayoutEntry &layout, int bits) {
  return Drawing(layout, bits).draw();
}
