// SPDX-License-Identifier: GPL-3.0-or-later
// Texts of core in the language of the window. core writes finished English sentences; a table of templates takes them apart
// into what varies and what does not, and puts the translation together again. What no template fits stays as it is.
// GUI thread only.
#pragma once

#include "core/result.h"

#include <QString>
#include <span>
#include <string>

namespace headroom::ui {

QString coreText(const std::string& english);
// "where: found …, expected …; next" with each part in the window's language.
QString errorText(const Error& error);

// Every sentence as it is written in core, with %1 … %9 for what varies.
std::span<const char* const> coreTemplates();       // of plans
std::span<const char* const> diagnosisTemplates();  // of logs and of searches for machines
// Whether a template takes the whole text; for tests.
bool hasTemplate(const std::string& english);

}  // namespace headroom::ui
