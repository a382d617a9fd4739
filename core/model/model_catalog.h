// SPDX-License-Identifier: Apache-2.0
// Models known by name without a file: resources/catalog/models.json, compiled in.
#pragma once

#include "core/model/model_config.h"

#include <string>
#include <vector>

namespace headroom {

struct CatalogModel {
  std::string name;     // "Qwen/Qwen2.5-72B-Instruct"
  std::string licence;  // SPDX or the vendor's name for it; empty: unknown
  nlohmann::json config;
};

const std::vector<CatalogModel>& modelCatalog();
// Case-insensitive; the part after the slash is enough when it is unique.
const CatalogModel* findCatalogModel(std::string_view name);

}  // namespace headroom
