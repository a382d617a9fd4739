// SPDX-License-Identifier: Apache-2.0
// Unicode scripts as the UnicodeScripts pre-tokenizer tells them apart: kana counts as Han, a space belongs to any script.
#pragma once

#include <cstdint>

namespace headroom::engine::text {

enum class Script : int32_t { any = -2 };  // other values are ICU's UScriptCode
Script scriptOf(char32_t character);

}  // namespace headroom::engine::text
