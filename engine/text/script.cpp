// SPDX-License-Identifier: Apache-2.0
#include "engine/text/script.h"

#include <unicode/uscript.h>

namespace headroom::engine::text {

Script scriptOf(char32_t c) {
  if (c == 0x30FC) return static_cast<Script>(USCRIPT_HAN);
  if (c == ' ') return Script::any;
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode code = uscript_getScript(static_cast<UChar32>(c), &status);
  if (code == USCRIPT_HIRAGANA || code == USCRIPT_KATAKANA) return static_cast<Script>(USCRIPT_HAN);
  return static_cast<Script>(code);
}

}  // namespace headroom::engine::text
