# SPDX-License-Identifier: Apache-2.0
# Writes a JSON file as the C++ string kModelCatalogText.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Generated from resources/catalog/models.json.
#include <string_view>
namespace headroom {
extern const std::string_view kModelCatalogText;
const std::string_view kModelCatalogText = R\"json(${text})json\";
}  // namespace headroom
")
