// SPDX-License-Identifier: Apache-2.0
// What cards cost, as a person wrote it: one file for the command line and the window. Prices are of one card, in whatever unit
// the person thinks in; they order answers and mean nothing else. None are known that nobody wrote.
#pragma once

#include "core/result.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {

using PriceList = std::map<std::string, double>;  // by the catalog's name of the card

// HEADROOM_PRICES, else prices.json under XDG_CONFIG_HOME/headroom or ~/.config/headroom; empty where there is none of them.
std::filesystem::path priceFile();
// Empty where there is no file, or one that holds no prices.
PriceList readPrices(const std::filesystem::path& file);
// Written beside and moved, so that a full disk leaves the old file. A file that holds something else is not replaced.
Status writePrices(const std::filesystem::path& file, const PriceList& prices);

// "L40S=0.9": a card of the catalog and what one of it costs; 0 forgets the price.
Result<std::pair<std::string, double>> parsePrice(std::string_view text);

}  // namespace headroom
