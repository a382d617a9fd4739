// SPDX-License-Identifier: Apache-2.0
// From tokens to the syntax tree. The grammar is that of jinja2 3.1 with the loopcontrols extension and Transformers' generation
// tag.
#pragma once

#include "engine/text/jinja_ast.h"

namespace headroom::engine::jinja {

// Throws Fault with the line where the source is no template.
Body parse(std::string_view source);

}  // namespace headroom::engine::jinja
