// SPDX-License-Identifier: Apache-2.0
// Safetensors headers: what is read, and one clear message for each way a file can be wrong.
#include "core/model/safetensors_header.h"
#include "core/model/safetensors_parser.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>
#include <random>

using namespace headroom;

namespace {

std::string withLength(const std::string& json, uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes + json;
}

std::string file(const std::string& json, size_t data) { return withLength(json, json.size()) + std::string(data, '\x01'); }

}  // namespace

class SafetensorsHeaderTest : public QObject {
  Q_OBJECT

  QTemporaryDir m_folder;

  Result<SafetensorsHeader> read(const std::string& bytes) {
    const std::filesystem::path path = (m_folder.path() + "/model.safetensors").toStdString();
    std::ofstream(path, std::ios::binary) << bytes;
    return readSafetensorsHeader(path);
  }

 private slots:
  void readsTensorsWithOffsetsFromTheFilesBegin() {
    const std::string json =
        R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    const auto header = read(file(json, 20));
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->tensors.size(), size_t(2));
    const auto& a = header->tensors[0];
    QCOMPARE(a.name, std::string("a"));
    QCOMPARE(a.offset, static_cast<int64_t>(8 + json.size()));
    QCOMPARE(a.bytes.count(), 8);
    const auto& b = header->tensors[1];
    QVERIFY(b.dtype == DType::BF16 && b.shape == std::vector<int64_t>({2, 3}));
    QVERIFY(header->warnings.empty());
  }

  void acceptsEightBitScalesAndFourBitPairs() {
    const auto header = read(file(
        R"({"s":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"F4","shape":[4,4],"data_offsets":[4,12]}})",
        12));
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->tensors[0].bytes.count(), 4);
    QCOMPARE(header->tensors[1].bytes.count(), 8);
  }

  void acceptsScalarsAndEmptyTensors() {
    const auto header = read(file(
        R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4));
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->tensors.size(), size_t(2));
  }

  void namesAnUnknownDTypeInAWarning() {
    const auto header = read(file(
        R"({"a":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}})", 7));
    QVERIFY(header.has_value());
    QCOMPARE(header->tensors.size(), size_t(1));
    QVERIFY(header->warnings.at(0).find("F6_E3M2") != std::string::npos);
  }

  void refusesWithItsOwnMessage_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* name, const std::string& bytes, const char* message) {
      QTest::newRow(name) << QByteArray::fromStdString(bytes) << message;
    };
    row("empty", "", "an empty file");
    row("lfs pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 269060552\n",
        "a Git LFS pointer of 72 bytes (the real file has 269060552)");
    row("html", "<!DOCTYPE html><html><head></head></html>", "an HTML page");
    row("server message", "{\"error\":\"Repository not found\"}", "a server's message");
    row("gguf", std::string("GGUF\3\0\0\0", 8) + std::string(24, '\0'), "a GGUF file");
    row("pickle", "PK\x03\x04 archive of tensors", "a PyTorch pickle or zip archive");
    row("seven bytes", "\x01\x02\x03\x04\x05\x06\x07", "7 bytes");
    row("zeros", std::string(300, '\0'), "only zero bytes");
    row("length beyond the limit", withLength("{}", 200'000'000), "a header length of 200000000 bytes");
    row("length of 2^63", withLength("{}", uint64_t{1} << 63), "a header length of 9223372036854775808 bytes");
    row("length beyond the file", withLength("{}", 5000), "a header of 5000 bytes in a file of 10");
    row("not JSON", file("not json", 0), "a header that begins \"not json\"");
    row("JSON list", file("[1, 2]", 0), "expected a JSON object of tensors");
    row("bad UTF-8", file("{\"\xff\":{}}", 0), "a header that begins");
    row("tensor twice",
        file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
        "tensor a twice");
    row("no dtype", file(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1), "an object with dtype, shape and data_offsets");
    row("dtype a number", file(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", 1), "dtype: found 7");
    row("negative extent", file(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
        "shape: found -1, expected a natural number");
    row("fractional extent", file(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1), "shape: found 1.5");
    row("shape overflow", file(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4),
        "a shape whose bytes fit the file");
    row("extent beyond 63 bits", file(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1),
        "expected a natural number");
    row("one offset", file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1), "expected [begin, end]");
    row("offsets reversed", file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1), "a begin before the end");
    row("truncated", file(R"({"a":{"dtype":"U8","shape":[100],"data_offsets":[0,100]}})", 40),
        "data up to byte 100 of 40 that the file holds");
    row("wrong size", file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
        "8 bytes of data, expected 12 bytes (float32 of shape [3])");
    row("odd FP4 count", file(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
        "an even count: two are stored in a byte");
    row("overlap",
        file(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})", 12),
        "tensors a and b share bytes");
  }
  void refusesWithItsOwnMessage() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, message);
    const auto header = read(bytes.toStdString());
    QVERIFY(!header);
    const QString text = QString::fromStdString(header.error().message());
    QVERIFY2(text.contains(message), qPrintable(text));
    QVERIFY2(text.contains("model.safetensors"), qPrintable(text));
  }

  void refusesAMissingFileAndAFolder() {
    QVERIFY(readSafetensorsHeader("/nonexistent/x.safetensors").error().message().find("no such file") != std::string::npos);
    QVERIFY(readSafetensorsHeader(m_folder.path().toStdString()).error().message().find("not a regular file") !=
            std::string::npos);
  }

  // Any bytes give a value or an error, and what is read lies within the file.
  void survivesDamagedHeaders() {
    const std::string good =
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]}})";
    std::mt19937 random(7);
    int read = 0;
    for (int round = 0; round < 20000; ++round) {
      std::string damaged = good;
      for (int hits = 1 + static_cast<int>(random() % 4); hits > 0; --hits) {
        const size_t at = random() % damaged.size();
        if (random() % 3 == 0)
          damaged.erase(at, 1 + random() % 3);
        else
          damaged[at] = static_cast<char>(random() % 2 ? '0' + random() % 10 : random() % 256);
        if (damaged.empty()) damaged = "{";
      }
      const int64_t size = 8 + static_cast<int64_t>(damaged.size()) + 20;
      const auto header = parseSafetensorsHeader(damaged, size, "fuzz");
      if (!header) continue;
      ++read;
      for (const auto& tensor : header->tensors) QVERIFY(tensor.offset >= 8 && tensor.offset + tensor.bytes.count() <= size);
    }
    QVERIFY(read > 0);
  }
};

QTEST_APPLESS_MAIN(SafetensorsHeaderTest)
#include "safetensors_header_test.moc"
