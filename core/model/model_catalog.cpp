// SPDX-License-Identifier: Apache-2.0
// The catalog as it was compiled in, and the search for a name in it.
#include "core/model/model_catalog.h"

#include <algorithm>
#include <cctype>

namespace headroom {

// resources/catalog/models.json; the build makes it a string.
extern const std::string_view kModelCatalogText;

namespace {

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Entries share keys by naming a base: {"name", "base": "other entry", "config": {changes}}.
std::vector<CatalogModel> readCatalog() {
  const auto json = nlohmann::json::parse(kModelCatalogText, nullptr, false);
  expects(json.is_object() && json.contains("models"), "resources/catalog/models.json is not valid");
  std::vector<CatalogModel> models;
  for (const auto& row : json["models"]) {
    CatalogModel model;
    model.name = row.at("name").get<std::string>();
    model.licence = row.value("licence", "");
    model.config = nlohmann::json::object();
    if (row.contains("base")) {
      const auto base = std::find_if(models.begin(), models.end(),
                                     [&](const auto& other) { return other.name == row["base"].get<std::string>(); });
      expects(base != models.end(), "a catalog entry's base must stand before it");
      model.config = base->config;
      if (model.licence.empty()) model.licence = base->licence;
    }
    if (row.contains("config")) model.config.merge_patch(row["config"]);
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

const std::vector<CatalogModel>& modelCatalog() {
  static const std::vector<CatalogModel> models = readCatalog();
  return models;
}

const CatalogModel* findCatalogModel(std::string_view name) {
  const std::string wanted = lowered(name);
  const CatalogModel* byPart = nullptr;
  bool unique = true;
  for (const auto& model : modelCatalog()) {
    const std::string full = lowered(model.name);
    if (full == wanted) return &model;
    if (full.substr(full.find('/') + 1) != wanted) continue;
    unique = byPart == nullptr;
    byPart = &model;
  }
  return unique ? byPart : nullptr;
}

}  // namespace headroom
