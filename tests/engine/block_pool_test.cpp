// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/block_pool.h"

#include <QtTest>
#include <set>

using namespace headroom::engine;

class BlockPoolTest : public QObject {
  Q_OBJECT
 private slots:
  void givesEveryBlockOnceAndThenNone() {
    BlockPool pool(3, 16, true);
    std::set<BlockId> seen;
    for (int i = 0; i < 3; ++i) seen.insert(pool.allocate().value());
    QCOMPARE(seen, (std::set<BlockId>{0, 1, 2}));
    QVERIFY(!pool.allocate().has_value());
    QCOMPARE(pool.free(), 0);
  }

  void findsAReleasedBlockByItsContents() {
    BlockPool pool(2, 4, true);
    const std::vector<int32_t> tokens{5, 6, 7, 8};
    const BlockHash hash = hashBlock({}, tokens);
    const BlockId block = pool.allocate().value();
    pool.publish(block, hash);
    pool.release(block);
    QCOMPARE(pool.free(), 2);
    QCOMPARE(pool.acquire(hash).value(), block);
    QCOMPARE(pool.free(), 1);
  }

  void reusesUnnamedBlocksFirstAndThenTheLongestUnused() {
    BlockPool pool(3, 1, true);
    std::vector<BlockHash> hashes;
    for (int32_t token = 0; token < 3; ++token) hashes.push_back(hashBlock({}, std::vector<int32_t>{token}));
    const BlockId a = pool.allocate().value(), b = pool.allocate().value(), c = pool.allocate().value();
    pool.publish(a, hashes[0]);
    pool.publish(c, hashes[2]);
    pool.release(c);
    pool.release(a);
    pool.release(b);
    QCOMPARE(pool.allocate().value(), b);
    QCOMPARE(pool.allocate().value(), c);
    QVERIFY(!pool.contains(hashes[2]));
    QVERIFY(pool.contains(hashes[0]));
  }

  void keepsASharedBlockUntilItsLastHolderReleasesIt() {
    BlockPool pool(1, 1, true);
    const BlockHash hash = hashBlock({}, std::vector<int32_t>{1});
    const BlockId block = pool.allocate().value();
    pool.publish(block, hash);
    QCOMPARE(pool.acquire(hash).value(), block);
    pool.release(block);
    QCOMPARE(pool.free(), 0);
    pool.release(block);
    QCOMPARE(pool.free(), 1);
  }

  void hashesDependOnWhatCameBefore() {
    const std::vector<int32_t> tokens{1, 2}, swapped{2, 1};
    QVERIFY(hashBlock({}, tokens) != hashBlock({}, swapped));
    QVERIFY(hashBlock(hashBlock({}, tokens), tokens) != hashBlock({}, tokens));
    QVERIFY(hashBlock({}, tokens) == hashBlock({}, tokens));
  }

  void publishesNothingWithoutPrefixCaching() {
    BlockPool pool(1, 1, false);
    const BlockHash hash = hashBlock({}, std::vector<int32_t>{1});
    pool.publish(pool.allocate().value(), hash);
    QVERIFY(!pool.contains(hash));
  }
};

QTEST_GUILESS_MAIN(BlockPoolTest)
#include "block_pool_test.moc"
