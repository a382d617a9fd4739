// SPDX-License-Identifier: Apache-2.0
// GGUF headers: values of every type, split files, and one clear message for each way a file can be wrong.
#include "core/model/gguf_header.h"
#include "core/model/gguf_parser.h"
#include "gguf_writer.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>
#include <random>

using namespace headroom;

class GgufHeaderTest : public QObject {
  Q_OBJECT

  QTemporaryDir m_folder;

  std::filesystem::path path(const std::string& name) { return std::filesystem::path(m_folder.path().toStdString()) / name; }

  Result<GgufHeader> read(const std::string& bytes, const std::string& name = "model.gguf", bool withTokens = true) {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return readGgufHeader(path(name), withTokens);
  }

  static GgufWriter small() {
    GgufWriter writer;
    writer.text("general.architecture", "llama").u32("llama.block_count", 2).tensor("a", 0, {4, 3}).tensor("b", 8, {64, 2});
    return writer;
  }

 private slots:
  void readsEveryValueType() {
    GgufWriter writer;
    writer.text("s", "text")
        .u32("u32", 4000000000u)
        .u64("u64", 1ull << 60)
        .i32("i32", -5)
        .f32("f32", 0.5f)
        .flag("bool", true)
        .texts("list", {"a", "b"})
        .i32s("numbers", {1, -2, 3});
    const auto header = read(writer.bytes());
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    const auto& data = header->metadata;
    QCOMPARE(data["s"].get<std::string>(), std::string("text"));
    QCOMPARE(data["u32"].get<uint64_t>(), uint64_t(4000000000u));
    QCOMPARE(data["u64"].get<uint64_t>(), uint64_t(1) << 60);
    QCOMPARE(data["i32"].get<int>(), -5);
    QCOMPARE(data["f32"].get<double>(), 0.5);
    QVERIFY(data["bool"].get<bool>());
    QCOMPARE(data["list"].size(), size_t(2));
    QCOMPARE(data["numbers"][1].get<int>(), -2);
  }

  // Whoever writes metadata as JSON meets no bytes that JSON cannot hold.
  void textsAreUtf8() {
    const auto header = read(GgufWriter().text("s", "a\xFF\xC3").texts("list", {"\xE4\xBD", "\xC3\xA9"}).bytes());
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->metadata.dump(),
             std::string("{\"list\":[\"\xEF\xBF\xBD\",\"\xC3\xA9\"],\"s\":\"a\xEF\xBF\xBD\xEF\xBF\xBD\"}"));
  }

  void placesTensorsOutermostFirst() {
    const auto header = read(small().bytes());
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->tensors.size(), size_t(2));
    QVERIFY((header->tensors[0].shape == std::vector<int64_t>{3, 4}));
    QCOMPARE(header->tensors[0].bytes.count(), 48);
    QCOMPARE(header->tensors[1].bytes.count(), 2 * 2 * 34);
    QCOMPARE(header->tensors[0].offset % 32, 0);
    QCOMPARE(header->tensors[1].offset - header->tensors[0].offset, 64);
  }

  void leavesOutTokenListsButKeepsTheirLength() {
    GgufWriter writer;
    writer.texts("tokenizer.ggml.tokens", {"a", "b", "c"}).f32("after", 2.f);
    const auto header = read(writer.bytes(), "model.gguf", false);
    QVERIFY(header.has_value());
    QVERIFY(!header->metadata.contains("tokenizer.ggml.tokens"));
    QCOMPARE(header->metadata["tokenizer.ggml.tokens.length"].get<int>(), 3);
    QCOMPARE(header->metadata["after"].get<double>(), 2.0);
  }

  void readsHeadersLongerThanTheFirstRead() {
    GgufWriter writer;
    writer.text("long", std::string(3 << 20, 'x')).u32("after", 7);
    const auto header = read(writer.bytes());
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->metadata["after"].get<int>(), 7);
  }

  void namesATensorTypeNewerThanThisReader() {
    GgufWriter writer = small();
    writer.tensor("blk.0.ffn_down_exps.weight", 77, {64}, 128);
    const auto header = read(writer.bytes());
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->metadata["llama.block_count"].get<int>(), 2);
    QCOMPARE(header->tensors.size(), size_t(2));
    QCOMPARE(header->unknownTensors.size(), size_t(1));
    QCOMPARE(header->unknownTensors[0].type, 77u);
    QCOMPARE(header->unknownTensors[0].bytesUpToNext.count(), 128);
    QCOMPARE(header->warnings.at(0),
             std::string("tensor blk.0.ffn_down_exps.weight uses tensor type 77, newer than this reader"));
  }

  void joinsSplitFiles() {
    GgufWriter first = small(), second;
    first.u16("split.count", 2).u16("split.no", 0).i32("split.tensors.count", 3);
    second.u16("split.count", 2).u16("split.no", 1).tensor("c", 0, {8});
    std::ofstream(path("m-00002-of-00002.gguf"), std::ios::binary) << second.bytes();
    const auto header = read(first.bytes(), "m-00001-of-00002.gguf");
    QVERIFY2(header, header ? "" : header.error().message().c_str());
    QCOMPARE(header->files.size(), size_t(2));
    QCOMPARE(header->tensors.back().name, std::string("c"));
    QCOMPARE(header->tensors.back().file, 1);
    const auto fromSecond = readGgufHeader(path("m-00002-of-00002.gguf"), true);
    QVERIFY(fromSecond.has_value());
    QCOMPARE(fromSecond->tensors.size(), size_t(3));
  }

  // Parts of another file, or in another order, under the right names.
  void refusesPartsThatDoNotBelongTogether() {
    GgufWriter first = small(), exchanged, repeated;
    first.u16("split.count", 2).u16("split.no", 0);
    exchanged.u16("split.count", 3).u16("split.no", 2).tensor("c", 0, {8});
    std::ofstream(path("x-00002-of-00002.gguf"), std::ios::binary) << exchanged.bytes();
    const auto order = read(first.bytes(), "x-00001-of-00002.gguf");
    QVERIFY(!order);
    QVERIFY2(order.error().message().find("x-00002-of-00002.gguf: found part 3 of 3, expected part 2 of 2") != std::string::npos,
             order.error().message().c_str());
    repeated.u16("split.count", 2).u16("split.no", 1).tensor("b", 0, {8});
    std::ofstream(path("y-00002-of-00002.gguf"), std::ios::binary) << repeated.bytes();
    const auto twice = read(first.bytes(), "y-00001-of-00002.gguf");
    QVERIFY(!twice);
    QVERIFY2(twice.error().message().find("tensor b in two parts") != std::string::npos, twice.error().message().c_str());
  }

  void namesMissingPartsOfASplitFile() {
    GgufWriter first = small();
    first.u16("split.count", 13);
    const auto header = read(first.bytes(), "big-00001-of-00013.gguf");
    QVERIFY(!header);
    const QString text = QString::fromStdString(header.error().message());
    QVERIFY2(text.contains("12 of 13 parts missing (big-00002-of-00013.gguf"), qPrintable(text));
    QVERIFY2(text.contains("big-00013-of-00013.gguf"), qPrintable(text));
  }

  void refusesWithItsOwnMessage_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* name, const std::string& bytes, const char* message, const char* file = "model.gguf") {
      QTest::newRow(name) << QByteArray::fromStdString(bytes) << file << message;
    };
    const std::string good = small().bytes();
    const auto number = [](uint64_t value, int bytes) {
      return std::string(reinterpret_cast<const char*>(&value), static_cast<size_t>(bytes));
    };
    row("empty", "", "an empty file");
    row("lfs pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 4912\n", "a Git LFS pointer");
    row("html", "\n<html><body>404</body></html>", "an HTML page");
    row("wrong magic", "ggjt" + good.substr(4), "\"ggjt");
    row("binary magic", "\x01\x02" + good, "bytes 01 02 47 47");
    row("big-endian", "GGUF" + std::string("\0\0\0\3", 4) + good.substr(8), "a big-endian GGUF file");
    row("version 1", "GGUF" + number(1, 4) + good.substr(8), "GGUF version 1");
    row("version 9", "GGUF" + number(9, 4) + good.substr(8), "GGUF version 9");
    row("only magic", "GGUF", "past the end of the file (4 bytes)");
    row("countless tensors", good.substr(0, 8) + number(uint64_t{1} << 62, 8) + good.substr(16),
        "tensors and 2 metadata keys in");
    row("countless keys", good.substr(0, 16) + number(UINT64_MAX, 8) + good.substr(24), "18446744073709551615 metadata keys");
    row("key longer than the file", good.substr(0, 24) + number(60000, 8) + good.substr(32), "a metadata key of 60000 bytes");
    row("key longer than allowed", good.substr(0, 24) + number(uint64_t{1} << 40, 8) + good.substr(32), "at most 65535 bytes");
    row("cut in the metadata", GgufWriter().text("k", std::string(1000, 'x')).bytes().substr(0, 500),
        "a string of 1000 bytes at byte 45, past the end of the file (500 bytes)");
    row("cut in the data", good.substr(0, good.size() - 1), "the download is truncated, or the file was split into raw parts");
    row("raw piece", good.substr(0, good.size() / 2), "one raw piece of a file that was cut into pieces", "model.gguf.part1of2");
    row("value type 13", GgufWriter().raw("k", 13, "").bytes() + std::string(16, 'x'), "metadata key k of value type 13");
    row("array of arrays", GgufWriter().raw("k", 9, number(9, 4) + number(1, 8)).bytes() + std::string(64, 'x'),
        "arrays inside an array");
    row("array longer than the file",
        GgufWriter().raw("k", 9, number(4, 4) + number(uint64_t{1} << 61, 8)).bytes() + std::string(64, 'x'),
        "array elements, more than the file holds");
    row("key twice", GgufWriter().u32("k", 1).u32("k", 2).bytes(), "metadata key k twice");
    row("tensor twice", GgufWriter().tensor("a", 0, {8}).tensor("a", 0, {8}).bytes(), "the name twice");
    row("five dimensions", GgufWriter().tensor("a", 0, {1, 1, 1, 1, 1}).bytes(), "tensor a with 5 dimensions");
    row("extent overflow", GgufWriter().tensor("a", 0, {int64_t{1} << 40, int64_t{1} << 40}, 64).bytes(),
        "a shape that fits the file");
    row("broken block", GgufWriter().tensor("a", 8, {33}, 64).bytes(), "rows of 33 elements of Q8_0, expected a multiple of 32");
    row("alignment of 0", GgufWriter().u32("general.alignment", 0).tensor("a", 0, {8}).bytes(), "a power of two up to 1048576");
    row("alignment of 24", GgufWriter().u32("general.alignment", 24).tensor("a", 0, {8}).bytes(), "a power of two up to 1048576");
    row("offset not aligned", GgufWriter().tensorAt("a", 0, {8}, 3, 64).bytes(), "expected a multiple of the alignment 32");
    row("offset past the end", GgufWriter().tensorAt("a", 0, {8}, 1 << 20, 64).bytes(), "an offset of 1048576");
    row("renamed split file", GgufWriter().u16("split.count", 3).bytes(), "a split file of 3 parts under this name");
    row("later part alone", good, "without the first part", "m-00002-of-00003.gguf");
  }
  void refusesWithItsOwnMessage() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, name);
    QFETCH(QString, message);
    const auto header = read(bytes.toStdString(), name.toStdString());
    QVERIFY(!header);
    const QString text = QString::fromStdString(header.error().message());
    QVERIFY2(text.contains(message), qPrintable(text));
  }

  // Any bytes give a value or an error, and what is read lies within the file.
  void survivesDamagedHeaders() {
    GgufWriter writer = small();
    writer.texts("tokenizer.ggml.tokens", {"a", "b"}).i32s("list", {1, 2});
    const std::string good = writer.bytes();
    std::mt19937 random(11);
    int read = 0;
    for (int round = 0; round < 30000; ++round) {
      std::string damaged = good;
      for (int hits = 1 + static_cast<int>(random() % 3); hits > 0; --hits)
        damaged[8 + random() % (damaged.size() - 8)] = static_cast<char>(random() % 4 ? random() % 256 : 0xFF);
      if (random() % 4 == 0) damaged.resize(4 + random() % (damaged.size() - 4));
      const auto parsed = parseGgufHeader(damaged, static_cast<int64_t>(damaged.size()), random() % 2, "fuzz");
      if (!parsed) continue;
      QVERIFY(!parsed->needsMore);
      ++read;
      for (const auto& tensor : parsed->header.tensors)
        QVERIFY(tensor.offset >= 0 && tensor.offset + tensor.bytes.count() <= static_cast<int64_t>(damaged.size()));
    }
    QVERIFY(read > 0);
  }
};

QTEST_APPLESS_MAIN(GgufHeaderTest)
#include "gguf_header_test.moc"
