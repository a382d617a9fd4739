// SPDX-License-Identifier: Apache-2.0
// Tokenizers give the ids and texts of the tokenizers library (tests/data/text/make_text_data.py wrote them down), from
// tokenizer.json and from GGUF; files that are wrong are refused with one error.
#include "engine/text/tokenizer.h"
#include "engine/text/gguf_splitting.h"
#include "engine/text/pre_tokenizer.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

using namespace headroom::engine;
using nlohmann::json;
using Ids = std::vector<int32_t>;

namespace {
const std::filesystem::path kData = std::filesystem::path(HEADROOM_TEST_DATA) / "text";

json readJson(const char* name) {
  std::ifstream file(kData / name);
  return json::parse(file);
}

QByteArray shown(const json& value) { return QByteArray::fromStdString(value.dump()); }

// Opened once for each file.
const Tokenizer* opened(const std::string& file) {
  static std::map<std::string, std::unique_ptr<Tokenizer>> known;
  if (!known.count(file)) {
    auto tokenizer = Tokenizer::open(kData / file);
    if (!tokenizer) qWarning("%s", tokenizer.error().message().c_str());
    known[file] = tokenizer ? std::move(*tokenizer) : nullptr;
  }
  return known[file].get();
}
}  // namespace

class TokenizerTest : public QObject {
  Q_OBJECT

 private slots:
  void encodesAndDecodesLikeTheLibrary_data() {
    QTest::addColumn<QByteArray>("kase");
    int number = 0;
    for (const json& kase : readJson("encodings.json"))
      QTest::addRow("%s %d", kase["tokenizer"].get<std::string>().c_str(), number++) << shown(kase);
  }
  void encodesAndDecodesLikeTheLibrary() {
    QFETCH(QByteArray, kase);
    const json expected = json::parse(kase.toStdString());
    const Tokenizer* tokenizer = opened(expected["tokenizer"].get<std::string>() + "/tokenizer.json");
    QVERIFY(tokenizer);
    const auto text = expected["text"].get<std::string>();
    QCOMPARE(shown(tokenizer->encode(text, false)), shown(expected["ids"]));
    QCOMPARE(shown(tokenizer->encode(text, true)), shown(expected["special"]));
    const Ids ids = expected["ids"];
    QCOMPARE(shown(tokenizer->decode(ids, false)), shown(expected["decoded"]));
    QCOMPARE(shown(tokenizer->decode(ids, true)), shown(expected["skipped"]));
  }

  void decodersAreTheLibrarys_data() {
    QTest::addColumn<QByteArray>("kase");
    int number = 0;
    for (const json& kase : readJson("decodings.json"))
      QTest::addRow("%s %d", kase["decoder"].get<std::string>().c_str(), number++) << shown(kase);
  }
  void decodersAreTheLibrarys() {
    QFETCH(QByteArray, kase);
    const json expected = json::parse(kase.toStdString());
    QTemporaryDir folder;
    const std::filesystem::path file = folder.filePath("tokenizer.json").toStdString();
    std::ofstream(file) << expected["source"];
    const auto tokenizer = Tokenizer::open(file);
    QVERIFY2(tokenizer, tokenizer ? "" : tokenizer.error().message().c_str());
    QCOMPARE(shown((*tokenizer)->decode(expected["ids"].get<Ids>(), false)), shown(expected["text"]));
  }

  void ggufsEncodeLikeTheLibrary_data() {
    QTest::addColumn<QByteArray>("kase");
    int number = 0;
    for (const json& kase : readJson("ggufs.json"))
      QTest::addRow("%s %d", kase["file"].get<std::string>().c_str(), number++) << shown(kase);
  }
  void ggufsEncodeLikeTheLibrary() {
    QFETCH(QByteArray, kase);
    const json expected = json::parse(kase.toStdString());
    const Tokenizer* tokenizer = opened(expected["file"]);
    QVERIFY(tokenizer);
    const auto text = expected["text"].get<std::string>();
    QCOMPARE(shown(tokenizer->encode(text, false)), shown(expected["ids"]));
    QCOMPARE(shown(tokenizer->encode(text, true)), shown(expected["special"]));
    QCOMPARE(shown(tokenizer->decode(expected["ids"].get<Ids>(), false)), shown(expected["decoded"]));
  }

  void ggufNamesItsEnds() {
    const Tokenizer* tokenizer = opened("byte_level.gguf");
    QVERIFY(tokenizer);
    const auto end = tokenizer->tokenId("<|end|>");
    QVERIFY(end);
    QCOMPARE(tokenizer->eosTokenIds(), Ids{*end});
    QVERIFY(tokenizer->isSpecial(*end));
    const auto userDefined = tokenizer->tokenId("norm");
    QVERIFY(userDefined && !tokenizer->isSpecial(*userDefined));
    QVERIFY(!tokenizer->tokenId("[PAD]"));  // unused
    QCOMPARE(opened("scored.gguf")->eosTokenIds(), Ids{2});
  }

  void everySplittingCompiles_data() {
    QTest::addColumn<QString>("name");
    for (const char* name :
         {"default", "gpt-2",  "smollm",   "starcoder", "command-r",   "llama-bpe", "smaug-bpe",  "qwen2",          "qwen35",
          "tekken",  "gpt-4o", "llama4",   "tiny_aya",  "falcon",      "bloom",     "viking",     "deepseek-llm",   "deepseek-v3",
          "olmo",    "refact", "minicpm5", "grok-2",    "chatglm-bpe", "stablelm2", "seed-coder", "deepseek-coder", "bailingmoe"})
      QTest::newRow(name) << name;
  }
  void everySplittingCompiles() {
    QFETCH(QString, name);
    const auto* splitting = text::ggufSplitting(name.toStdString());
    QVERIFY(splitting);
    const auto made = text::makePreTokenizer(text::preTokenizerOf(*splitting), true);
    QVERIFY2(made, made ? "" : made.error().message().c_str());
    // Nothing of a text is lost.
    const std::string_view text = "Ab c12345, d\n\n  Ωé 人工 'll ";
    text::Words words;
    words.reset(text, true);
    (*made)->apply(words);
    std::string joined;
    for (const auto& range : words.ranges) joined += words.text.substr(range.begin, range.end - range.begin);
    QCOMPARE(joined, std::string(text));
  }
  void unknownSplittingIsNoSplitting() { QVERIFY(!text::ggufSplitting("nonsense")); }

  void invalidUtf8BecomesReplacements() {
    const Tokenizer* tokenizer = opened("byte_level/tokenizer.json");
    QVERIFY(tokenizer);
    QCOMPARE(tokenizer->encode("a\xFF\xE4\xBD z", false), tokenizer->encode("a\uFFFD\uFFFD z", false));
  }

  void manyThreadsEncodeTheSame() {
    const Tokenizer* tokenizer = opened("split_pattern/tokenizer.json");
    QVERIFY(tokenizer);
    std::string text;
    for (int i = 0; i < 200; ++i) text += "headroom's " + std::to_string(i * 7919) + " 人工智能\n";
    const Ids expected = tokenizer->encode(text, false);
    std::vector<Ids> found(4);
    std::vector<std::thread> threads;
    for (Ids& ids : found) threads.emplace_back([&] { ids = tokenizer->encode(text, false); });
    for (std::thread& thread : threads) thread.join();
    for (const Ids& ids : found) QCOMPARE(ids, expected);
  }

  void longWordsTakeNoSquareTime() {
    const Tokenizer* tokenizer = opened("byte_fallback/tokenizer.json");
    QVERIFY(tokenizer);
    const std::string text(300'000, 'e');
    QElapsedTimer timer;
    timer.start();
    QVERIFY(!tokenizer->encode(text, false).empty());
    QVERIFY2(timer.elapsed() < 20'000, "300 000 characters without a space take longer than 20 s");
  }

  void refusesWrongFiles_data() {
    QTest::addColumn<QByteArray>("content");  // with ' for "
    QTest::addColumn<QString>("mentions");
    QTest::newRow("no JSON") << QByteArray("{") << "JSON";
    QTest::newRow("no model") << QByteArray("{}") << "model";
    QTest::newRow("list") << QByteArray("[]") << "model";
    QTest::newRow("unknown model") << QByteArray("{'model':{'type':'Magic'}}") << "Magic";
    QTest::newRow("negative id") << QByteArray("{'model':{'type':'BPE','vocab':{'a':-1},'merges':[]}}") << "-1";
    QTest::newRow("huge id") << QByteArray("{'model':{'type':'BPE','vocab':{'a':4000000000},'merges':[]}}") << "4000000000";
    QTest::newRow("id twice") << QByteArray("{'model':{'type':'BPE','vocab':{'a':0,'b':0},'merges':[]}}") << "twice";
    QTest::newRow("merge of unknown") << QByteArray("{'model':{'type':'BPE','vocab':{'a':0},'merges':['a b']}}") << "merge 0";
    QTest::newRow("merge of three") << QByteArray("{'model':{'type':'BPE','vocab':{'a':0},'merges':['a a a']}}")
                                    << "two spellings";
    QTest::newRow("pre-tokenizer") << QByteArray(
                                          "{'model':{'type':'BPE','vocab':{'a':0},'merges':[]},'pre_tokenizer':{'type':'Odd'}}")
                                   << "Odd";
    QTest::newRow("pattern")
        << QByteArray(
               "{'model':{'type':'BPE','vocab':{'a':0},'merges':[]},'pre_tokenizer':{'type':'Split','pattern':{'Regex':'*a'}}}")
        << "*a";
    const auto split = [](const QByteArray& pattern) {
      return "{'model':{'type':'BPE','vocab':{'a':0},'merges':[]},'pre_tokenizer':{'type':'Split','pattern':{'Regex':'" +
             pattern + "'}}}";
    };
    QTest::newRow("deep pattern") << split(QByteArray(1'000'000, '[')) << "nested too deep";
    QTest::newRow("pattern of code units") << split("\\\\C") << "\\C";
    QTest::newRow("unigram without pieces") << QByteArray("{'model':{'type':'Unigram','vocab':[]}}") << "no pieces";
    QTest::newRow("unknown id of unigram") << QByteArray("{'model':{'type':'Unigram','vocab':[['a',0]],'unk_id':7}}") << "unk_id";
  }
  void refusesWrongFiles() {
    QFETCH(QByteArray, content);
    QFETCH(QString, mentions);
    QTemporaryDir folder;
    const std::filesystem::path file = folder.filePath("tokenizer.json").toStdString();
    std::ofstream(file) << content.replace('\'', '"').toStdString();
    const auto tokenizer = Tokenizer::open(file);
    QVERIFY(!tokenizer);
    const QString message = QString::fromStdString(tokenizer.error().message());
    QVERIFY2(message.contains(mentions), qPrintable(message));
    QVERIFY2(message.contains("tokenizer.json"), qPrintable(message));
  }

  // A character map whose only entry, "a", becomes what begins inside the character U+00E9; a replacement by nothing; a whole
  // word that vanishes before the next step.
  void partsOfCharactersStayOut() {
    std::vector<uint32_t> units(1024, 0);
    units[0] = 1u << 10;  // the root's children lie at 1 ^ byte
    units[1 ^ 'a'] = 'a' | 1u << 8 | (512u << 10);
    units[(1 ^ 'a') ^ 512] = 1u << 31 | 1;  // its replacement begins at byte 1
    std::string blob(4, '\0');
    const auto size = static_cast<uint32_t>(units.size() * 4);
    std::memcpy(blob.data(), &size, 4);
    blob.append(reinterpret_cast<const char*>(units.data()), size);
    blob += std::string("\xC3\xA9\0", 3);
    const json normalizer = {{"type", "Precompiled"},
                             {"precompiled_charsmap", QByteArray::fromStdString(blob).toBase64().toStdString()}};
    const json vanishing = {{"type", "Metaspace"}, {"replacement", ""}, {"prepend_scheme", "never"}, {"split", false}};
    const json root = {
        {"model",
         {{"type", "Unigram"}, {"vocab", json::array({json::array({"<unk>", 0.0}), json::array({"b", -1.0})})}, {"unk_id", 0}}},
        {"normalizer", normalizer},
        {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {vanishing, vanishing}}}}};
    QTemporaryDir folder;
    const std::filesystem::path file = folder.filePath("tokenizer.json").toStdString();
    std::ofstream(file) << root.dump();
    const auto tokenizer = Tokenizer::open(file);
    QVERIFY2(tokenizer.has_value(), tokenizer ? "" : tokenizer.error().message().c_str());
    QCOMPARE(shown((*tokenizer)->encode("a", false)), shown(Ids{0}));
    QCOMPARE(shown((*tokenizer)->encode(" ", false)), shown(Ids{}));
    QCOMPARE(shown((*tokenizer)->encode("b a", false)), shown(Ids{1, 0}));
  }

  void refusesMissingFiles() {
    QTemporaryDir folder;
    const auto tokenizer = Tokenizer::open(folder.path().toStdString());
    QVERIFY(!tokenizer);
    QVERIFY(QString::fromStdString(tokenizer.error().message()).contains("no such file"));
  }
};

QTEST_GUILESS_MAIN(TokenizerTest)
#include "tokenizer_test.moc"
