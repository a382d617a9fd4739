// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/price_list.h"

#include "core/hardware/machine.h"
#include "core/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace headroom {

namespace fs = std::filesystem;

namespace {

// The file's text; empty where there is none. A pipe would be waited for.
std::string textOf(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

fs::path priceFile() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const fs::path given = variable("HEADROOM_PRICES"); !given.empty()) return given;
  if (const fs::path config = variable("XDG_CONFIG_HOME"); !config.empty()) return config / "headroom" / "prices.json";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".config" / "headroom" / "prices.json";
  return {};
}

PriceList readPrices(const fs::path& file) {
  PriceList prices;
  const nlohmann::json json = readJsonText(textOf(file));
  if (!json.is_object()) return prices;
  for (const auto& [card, price] : json.items()) {
    if (price.is_number() && price.get<double>() > 0) prices[card] = price.get<double>();
  }
  return prices;
}

Status writePrices(const fs::path& file, const PriceList& prices) {
  if (file.empty()) return failure("prices", "neither HEADROOM_PRICES nor HOME", "a place to keep them");
  if (const std::string old = textOf(file); !old.empty() && !readJsonText(old).is_object())
    return failure(file.string(), "something else than the prices of cards, which would be lost", "a JSON object of cards",
                   "mend the file or move it away");
  std::error_code error;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  fs::path beside = file;
  beside += ".new";
  {
    std::ofstream stream(beside);
    stream << nlohmann::json(prices).dump(2) << "\n";
    if (!stream.flush()) return failure(beside.string(), "a file that cannot be written", "room and permission");
  }
  fs::rename(beside, file, error);
  if (error) return failure(file.string(), error.message(), "a file that can be replaced");
  return {};
}

Result<std::pair<std::string, double>> parsePrice(std::string_view text) {
  const size_t at = text.rfind('=');
  double price = -1;
  const char* end = text.data() + text.size();
  const char* number = at == std::string_view::npos ? end : text.data() + at + 1;
  const auto read = std::from_chars(number, end, price);
  const bool isNumber = read.ec == std::errc() && read.ptr == end && std::isfinite(price) && price >= 0;
  if (!isNumber) return failure("--price", fmt::format("\"{}\"", text), "CARD=PRICE, such as L40S=0.9; 0 forgets the price");
  const GpuSpec* card = findGpu(text.substr(0, at));
  if (!card) return failure("--price", fmt::format("\"{}\"", text.substr(0, at)), "a card of the catalog, such as L40S");
  return std::pair(card->name, price);
}

}  // namespace headroom
