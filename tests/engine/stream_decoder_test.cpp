// SPDX-License-Identifier: Apache-2.0
// Streams give whole characters as soon as they are whole, and the text of decode() in the end.
#include "engine/text/tokenizer.h"

#include <QtTest>

using namespace headroom::engine;
using Ids = std::vector<int32_t>;

namespace {
std::unique_ptr<Tokenizer> open(const char* name) {
  auto tokenizer = Tokenizer::open(std::filesystem::path(HEADROOM_TEST_DATA) / "text" / name);
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

// The id of one byte, in a byte-level or a byte-fallback vocabulary.
int32_t byteId(const Tokenizer& tokenizer, unsigned char byte) {
  for (int32_t id = 0; id < tokenizer.vocabSize(); ++id)
    if (tokenizer.tokenBytes(id) == std::string(1, static_cast<char>(byte)) && !tokenizer.isSpecial(id)) return id;
  return -1;
}
Ids bytesOf(const Tokenizer& tokenizer, std::string_view bytes) {
  Ids ids;
  for (char byte : bytes) ids.push_back(byteId(tokenizer, static_cast<unsigned char>(byte)));
  return ids;
}
}  // namespace

class StreamDecoderTest : public QObject {
  Q_OBJECT

 private slots:
  void streamsTheTextOfDecode_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"byte_level/tokenizer.json", "split_pattern/tokenizer.json", "byte_fallback/tokenizer.json",
                             "unigram/tokenizer.json", "word_piece/tokenizer.json", "byte_level.gguf", "scored.gguf"})
      QTest::newRow(name) << name;
  }
  void streamsTheTextOfDecode() {
    QFETCH(QString, name);
    const auto tokenizer = open(qPrintable(name));
    QVERIFY(tokenizer);
    for (const char* text : {"Hello, what fits?", " leading space", "😀 👨‍👩‍👧 🇩🇪 x", "한국어 인공지능",
                             "a\n\n  b", "<|end|>x<|end|>", "déjà 人工智能", "  ", "", "don't . do"}) {
      const Ids ids = tokenizer->encode(text, true);
      for (bool skip : {false, true}) {
        StreamDecoder stream(*tokenizer, skip);
        std::string all;
        for (int32_t id : ids) {
          const std::string piece = stream.push(id);
          QVERIFY(QString::fromStdString(piece).toStdString() == piece);  // whole characters
          all += piece;
        }
        all += stream.flush();
        QCOMPARE(all, tokenizer->decode(ids, skip));
      }
    }
  }

  void holdsACharacterUntilItIsWhole_data() {
    QTest::addColumn<QString>("name");
    QTest::newRow("byte level") << "byte_level/tokenizer.json";
    QTest::newRow("byte fallback") << "byte_fallback/tokenizer.json";
  }
  void holdsACharacterUntilItIsWhole() {
    QFETCH(QString, name);
    const auto tokenizer = open(qPrintable(name));
    QVERIFY(tokenizer);
    StreamDecoder stream(*tokenizer, true);
    std::string first;  // the first token may lose a space
    for (int32_t id : tokenizer->encode("fits", false)) first += stream.push(id);
    QCOMPARE(first, std::string("fits"));
    for (const std::string character : {"😀", "각", "é"}) {
      const Ids ids = bytesOf(*tokenizer, character);
      for (size_t i = 0; i + 1 < ids.size(); ++i) QCOMPARE(stream.push(ids[i]), std::string());
      QCOMPARE(stream.push(ids.back()), character);
    }
    QCOMPARE(stream.flush(), std::string());
  }

  void flushesAnUnfinishedCharacter() {
    const auto tokenizer = open("byte_level/tokenizer.json");
    QVERIFY(tokenizer);
    StreamDecoder stream(*tokenizer, true);
    for (int32_t id : bytesOf(*tokenizer, "\xF0\x9F\x98")) QCOMPARE(stream.push(id), std::string());
    QCOMPARE(stream.flush(), std::string("\uFFFD"));
    QCOMPARE(stream.push(byteId(*tokenizer, 'a')), std::string("a"));
  }

  void bytesThatBecomeNothingAreNotHeldBack_data() { holdsACharacterUntilItIsWhole_data(); }
  void bytesThatBecomeNothingAreNotHeldBack() {
    QFETCH(QString, name);
    const auto tokenizer = open(qPrintable(name));
    QVERIFY(tokenizer);
    const int32_t lead = byteId(*tokenizer, 0xF0);
    QVERIFY(lead >= 0);
    StreamDecoder stream(*tokenizer, true);
    QCOMPARE(stream.push(lead), std::string());
    for (int i = 0; i < 100; ++i) QCOMPARE(stream.push(lead), std::string("\uFFFD"));
    QCOMPARE(stream.flush(), std::string("\uFFFD"));
  }

  void textBeforeAnUnfinishedCharacterIsGivenOut() {
    const auto tokenizer = open("byte_level/tokenizer.json");
    QVERIFY(tokenizer);
    StreamDecoder stream(*tokenizer, true);
    std::string all;
    for (int32_t id : bytesOf(*tokenizer, "a\xE4")) all += stream.push(id);
    QCOMPARE(all, std::string("a"));
    QCOMPARE(stream.push(byteId(*tokenizer, 'b')), std::string("\uFFFD"
                                                               "b"));
    for (int32_t id : bytesOf(*tokenizer, "\xE4\xBD\xA0")) all += stream.push(id);
    QCOMPARE(all, std::string("a你"));
  }
};

QTEST_GUILESS_MAIN(StreamDecoderTest)
#include "stream_decoder_test.moc"
