// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers as people read them, in the language of the window: binary units, grouped digits, "—" for unknown.
#pragma once

#include "core/units.h"

#include <QString>
#include <optional>

namespace headroom::ui {

inline const QString kUnknown = QStringLiteral("—");

// "12.3 GiB"; less than a tenth of a GiB in MiB. Always binary units.
QString formatGib(std::optional<Bytes> bytes);
// "394,112"
QString formatCount(std::optional<int64_t> count);
// "512", "394k", "1.2M": for cells that have no room for all digits.
QString formatCompact(std::optional<int64_t> count);
// "72.7 B": parameters, in billions or millions.
QString formatParameters(int64_t count);
// "38.2", "1,240": three digits that count.
QString formatDecimal(std::optional<double> value);

}  // namespace headroom::ui
