// SPDX-License-Identifier: Apache-2.0
#include "engine/model/fault_injection.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace headroom::engine {
namespace {

std::optional<Fault> parse(const std::string& text) {
  static const std::map<std::string, Fault::Kind> kinds = {{"throw", Fault::Kind::Throw},
                                                           {"error", Fault::Kind::Error},
                                                           {"memory", Fault::Kind::Memory},
                                                           {"stall", Fault::Kind::Stall}};
  Fault fault;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) return {};
    const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
    if (key == "kind") {
      const auto found = kinds.find(value);
      if (found == kinds.end()) return {};
      fault.kind = found->second;
    } else if (key == "step" && value == "load") {
      fault.step = -1;
    } else if (key == "rank" || key == "step") {
      if (value.empty() || value.size() > 9 || value.find_first_not_of("0123456789") != std::string::npos) return {};
      (key == "rank" ? fault.rank = std::stoi(value) : fault.step = std::stoi(value));
    } else {
      return {};
    }
  }
  return fault;
}

}  // namespace

std::optional<Fault> Fault::fromEnvironment() {
  const char* text = std::getenv("HEADROOM_FAULT");
  if (!text || !*text) return {};
  const std::optional<Fault> fault = parse(text);
  if (!fault) fmt::print(stderr, "headroom: HEADROOM_FAULT is not understood and ignored: {}\n", text);
  return fault;
}

Status Fault::strike(const std::atomic<bool>& stopped) const {
  switch (kind) {
    case Kind::Throw:
      throw std::runtime_error("a fault asked for by HEADROOM_FAULT");
    case Kind::Memory:
      throw std::bad_alloc();
    case Kind::Error:
      return failure("an operation", "a fault asked for by HEADROOM_FAULT");
    case Kind::Stall:
      while (!stopped.load(std::memory_order_acquire)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return {};
  }
  return {};
}

}  // namespace headroom::engine
