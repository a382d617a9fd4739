// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QLocale>
#include <cmath>

namespace headroom::ui {

QString formatGib(std::optional<Bytes> bytes) {
  if (!bytes) return kUnknown;
  const double gib = bytes->gib();
  const QLocale locale;
  if (bytes->count() != 0 && std::abs(gib) < 0.1) {
    const double mib = gib * 1024.0;
    return QCoreApplication::translate("Headroom", "%1 MiB").arg(locale.toString(mib, 'f', std::abs(mib) < 10 ? 1 : 0));
  }
  return QCoreApplication::translate("Headroom", "%1 GiB").arg(locale.toString(gib, 'f', std::abs(gib) < 1 ? 2 : 1));
}

QString formatCount(std::optional<int64_t> count) {
  return count ? QLocale().toString(static_cast<qlonglong>(*count)) : kUnknown;
}

QString formatCompact(std::optional<int64_t> count) {
  if (!count) return kUnknown;
  const QLocale locale;
  const double value = static_cast<double>(*count);
  const double size = std::abs(value);
  if (size < 1e4) return locale.toString(static_cast<qlonglong>(*count));
  if (size < 9.995e5)
    return QCoreApplication::translate("Headroom", "%1k", "thousands").arg(locale.toString(value / 1e3, 'f', size < 1e5 ? 1 : 0));
  return QCoreApplication::translate("Headroom", "%1M", "millions").arg(locale.toString(value / 1e6, 'f', size < 1e8 ? 1 : 0));
}

QString formatParameters(int64_t count) {
  const QLocale locale;
  const double value = static_cast<double>(count);
  if (value >= 1e9)
    return QCoreApplication::translate("Headroom", "%1 B", "billions")
        .arg(locale.toString(value / 1e9, 'f', value < 1e11 ? 1 : 0));
  if (value >= 1e6)
    return QCoreApplication::translate("Headroom", "%1 M", "millions")
        .arg(locale.toString(value / 1e6, 'f', value < 1e8 ? 1 : 0));
  return locale.toString(static_cast<qlonglong>(count));
}

QString formatDecimal(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return kUnknown;
  const double size = std::abs(*value);
  return QLocale().toString(*value, 'f', size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

}  // namespace headroom::ui
