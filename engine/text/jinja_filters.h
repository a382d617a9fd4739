// SPDX-License-Identifier: Apache-2.0
// The tables of filters that findFilter() looks into.
#pragma once

#include "engine/text/jinja_interpreter.h"

#include <map>

namespace headroom::engine::jinja {

const std::map<std::string_view, Filter>& textFilters();
const std::map<std::string_view, Filter>& sequenceFilters();

}  // namespace headroom::engine::jinja
