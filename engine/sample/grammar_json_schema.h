// SPDX-License-Identifier: Apache-2.0
// JSON documents as grammars: any value, any object, and those that satisfy a JSON Schema (draft 2020-12, and "definitions" of
// older drafts).
//
// Documents are written compactly, with at most one space behind a comma or colon; properties come in the schema's order. Beside
// listed properties others come only where additionalProperties allows them in words. Keywords that restrict and are not honoured
// are refused by name.
#pragma once

#include "engine/sample/grammar.h"

#include <nlohmann/json.hpp>

namespace headroom::engine {

GrammarBuilder::Node addJsonValue(GrammarBuilder& builder);
GrammarBuilder::Node addJsonObject(GrammarBuilder& builder);
// `where` names the request's field in errors; they name the keyword or value too.
Result<GrammarBuilder::Node> addJsonSchema(GrammarBuilder& builder, const nlohmann::ordered_json& schema,
                                           const std::string& where);

}  // namespace headroom::engine
