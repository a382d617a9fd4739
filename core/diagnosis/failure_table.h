// SPDX-License-Identifier: Apache-2.0
// Private to core/diagnosis: one row a known failure. Words are looked for in lower case; rows stand by certainty, so that a cause
// is told before what followed from it.
#pragma once

#include "core/diagnosis/log_diagnosis.h"

#include <vector>

namespace headroom {

struct FailureRow {
  const char* kind;
  int certainty;  // 3: the cause itself; 2: a cause with several origins; 1: a symptom
  std::vector<const char*> all;   // words that the line holds
  std::vector<const char*> none;  // and does not hold
  const char* title;
  const char* why;
  std::vector<const char*> fixes;
  // Fills in numbers of the line, or what depends on the phase; may be null.
  void (*explain)(const std::string& line, LogPhase phase, LogFinding& finding) = nullptr;
};

const std::vector<FailureRow>& failureTable();

}  // namespace headroom
