// SPDX-License-Identifier: Apache-2.0
// Row groups of block-quantized types, unpacked: 256 columns of kLanes rows at a time become unsigned bytes with a scale for each
// 32 or 16 columns. Included like int8_linear-inl.h, after the vectors. Layout of the groups: row_groups.h; of the blocks:
// block_formats.cpp.

// weight = scale * (byte - zero) + minimum. `byte` is at most `top`.
struct WeightKind {
  bool halves = false;  // a scale (and minimum) for each 16 columns, else for each 32
  int zero = 0;         // 0, 4 (halves only), 8, 16, 32 (halves only), 64 or 128
  bool minimum = false;
  int top = 255;
};

struct Unpacked {
  alignas(64) uint8_t weights[8 * 8 * kLanes * 4];  // (groups of 32, words, rows, 4)
  alignas(64) float scales[16 * kLanes];            // (groups of 32, 1 or 2, rows)
  alignas(64) float minimums[16 * kLanes];
};

// One stretch of a row group: `row` is where this vector's rows begin in it.
struct Stretch {
  const uint8_t* row;
  int64_t blocks;  // in a row
  int lane;        // of the group's 16 rows
};

inline Ints shiftRight(Ints x, int count) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(x) >> static_cast<uint32_t>(count));
}
inline Ints shiftLeft(Ints x, int count) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(x) << static_cast<uint32_t>(count));
}
inline Ints subtract(Ints a, Ints b) { return reinterpret_cast<Ints>(reinterpret_cast<Words>(a) - reinterpret_cast<Words>(b)); }
inline Ints eachByte(int x) { return broadcast(static_cast<int32_t>(static_cast<uint32_t>(x & 255) * 0x01010101u)); }
// Byte `index` of each word as a number.
inline Ints byteAt(Ints x, int index) { return shiftRight(x, 8 * index) & broadcast(255); }
inline Floats signedByteAt(Ints x, int index) { return toFloats(subtract(byteAt(x, index) ^ broadcast(128), broadcast(128))); }

template <DType kType>
struct PackedBlocks {
  static constexpr BlockPieces kPieces = blockPieces(kType);
  static constexpr int kGroups =
      kType == DType::Q5_0 || kType == DType::Q5_1 || kType == DType::IQ4_NL || kType == DType::MXFP4 ? 1 : 8;

  Stretch stretch;
  int64_t block;
  Ints word(int index) const { return load(stretch.row + (block * kPieces.words + index) * 64); }
  const uint8_t* rest() const {
    return stretch.row - stretch.lane * 4 + stretch.blocks * kPieces.words * 64 +
           (block * kGroupRows + stretch.lane) * kPieces.restBytes;
  }
  Floats restHalf() const { return halves(rest()); }
  void prefetch() const {
    for (int i = 0; i < kPieces.words; ++i)
      _mm_prefetch(reinterpret_cast<const char*>(stretch.row + (block * kPieces.words + i) * 64 + kPrefetchBytes), _MM_HINT_T0);
  }
};

inline void putWeights(Unpacked& to, int group, int word, Ints bytes) {
  store(to.weights + (group * 8 + word) * kLanes * 4, bytes);
}
inline void putScale(Unpacked& to, int index, Floats scale) { store(to.scales + index * kLanes, scale); }
inline void putMinimum(Unpacked& to, int index, Floats minimum) { store(to.minimums + index * kLanes, minimum); }

// Bit i of each word (below 16) to byte i.
inline Ints spreadBits(Ints fourBits) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(fourBits) * 0x00204081u) & eachByte(1);
}
// Four signs in the low bits of each word as bytes 0 or 255.
inline Ints signMask(Ints fourBits) {
  const Ints spread = spreadBits(fourBits);
  return subtract(shiftLeft(spread, 8), spread);
}
// The eighth sign makes the number of seven even.
inline Ints eightSigns(Ints seven) {
  Ints parity = seven ^ shiftRight(seven, 4);
  parity = parity ^ shiftRight(parity, 2);
  parity = parity ^ shiftRight(parity, 1);
  return seven | shiftLeft(parity & broadcast(1), 7);
}
inline Ints signedPlus64(Ints magnitudes, Ints fourSigns) {
  const Ints mask = signMask(fourSigns);
  return addBytes(subtractBytes(magnitudes ^ mask, mask), eachByte(64));
}

template <DType kType>
struct Decoder;

template <>
struct Decoder<DType::Q4_K> {
  static constexpr WeightKind kKind = {.minimum = true, .top = 15};
  // Eight scales and minimums of 6 bits in the words 1 to 3, their factors in word 0.
  template <class Blocks>
  static void scalesOf(const Blocks& from, Unpacked& to) {
    const Ints factors = from.word(0), a = from.word(1), b = from.word(2), c = from.word(3);
    const Floats d = halvesOfWords(factors), dmin = multiply(halvesOfWords(shiftRight(factors, 16)), broadcast(-1.0f));
    const Ints low = eachByte(15), high = eachByte(0x30), six = eachByte(63);
    const Ints scales[2] = {a & six, (c & low) | (shiftRight(a, 2) & high)};
    const Ints minimums[2] = {b & six, (shiftRight(c, 4) & low) | (shiftRight(b, 2) & high)};
    for (int j = 0; j < 8; ++j) {
      putScale(to, j, multiply(d, toFloats(byteAt(scales[j / 4], j % 4))));
      putMinimum(to, j, multiply(dmin, toFloats(byteAt(minimums[j / 4], j % 4))));
    }
  }
  static void decode(const PackedBlocks<DType::Q4_K>& from, Unpacked& to, int) {
    scalesOf(from, to);
    for (int j = 0; j < 8; j += 2) {
      for (int i = 0; i < 8; ++i) {
        const Ints both = from.word(4 + j * 4 + i);
        putWeights(to, j, i, lowNibbles(both));
        putWeights(to, j + 1, i, highNibbles(both));
      }
    }
  }
};

template <>
struct Decoder<DType::Q5_K> {
  static constexpr WeightKind kKind = {.minimum = true, .top = 31};
  static void decode(const PackedBlocks<DType::Q5_K>& from, Unpacked& to, int) {
    Decoder<DType::Q4_K>::scalesOf(from, to);
    const Ints fifth = eachByte(16);
    for (int i = 0; i < 8; ++i) {
      const Ints bits = from.word(4 + i);
      for (int j = 0; j < 8; j += 2) {
        const Ints both = from.word(12 + j * 4 + i);
        putWeights(to, j, i, lowNibbles(both) | ((j < 4 ? shiftLeft(bits, 4 - j) : shiftRight(bits, j - 4)) & fifth));
        putWeights(to, j + 1, i, highNibbles(both) | ((j < 3 ? shiftLeft(bits, 3 - j) : shiftRight(bits, j - 3)) & fifth));
      }
    }
  }
};

template <>
struct Decoder<DType::Q6_K> {
  static constexpr WeightKind kKind = {.halves = true, .zero = 32, .top = 63};
  static void decode(const PackedBlocks<DType::Q6_K>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    for (int i = 0; i < 16; ++i) putScale(to, i, multiply(d, signedByteAt(from.word(48 + i / 4), i % 4)));
    const Ints top = eachByte(0x30);
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 8; ++i) {
        const Ints first = from.word(half * 16 + i), second = from.word(half * 16 + 8 + i), bits = from.word(32 + half * 8 + i);
        putWeights(to, half * 4, i, lowNibbles(first) | (shiftLeft(bits, 4) & top));
        putWeights(to, half * 4 + 1, i, lowNibbles(second) | (shiftLeft(bits, 2) & top));
        putWeights(to, half * 4 + 2, i, highNibbles(first) | (bits & top));
        putWeights(to, half * 4 + 3, i, highNibbles(second) | (shiftRight(bits, 2) & top));
      }
    }
  }
};

template <>
struct Decoder<DType::Q2_K> {
  static constexpr WeightKind kKind = {.halves = true, .minimum = true, .top = 3};
  static void decode(const PackedBlocks<DType::Q2_K>& from, Unpacked& to, int) {
    const Ints factors = from.word(20);
    const Floats d = halvesOfWords(factors), dmin = multiply(halvesOfWords(shiftRight(factors, 16)), broadcast(-1.0f));
    for (int i = 0; i < 16; ++i) {
      const Ints packed = byteAt(from.word(i / 4), i % 4);
      putScale(to, i, multiply(d, toFloats(packed & broadcast(15))));
      putMinimum(to, i, multiply(dmin, toFloats(shiftRight(packed, 4))));
    }
    for (int j = 0; j < 8; ++j)
      for (int i = 0; i < 8; ++i) putWeights(to, j, i, shiftRight(from.word(4 + j / 4 * 8 + i), j % 4 * 2) & eachByte(3));
  }
};

template <>
struct Decoder<DType::Q3_K> {
  static constexpr WeightKind kKind = {.halves = true, .zero = 4, .top = 7};
  static void decode(const PackedBlocks<DType::Q3_K>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    const Ints tops = from.word(26);
    for (int i = 0; i < 16; ++i) {
      const Ints low = shiftRight(from.word(24 + i / 4 % 2), i / 8 * 4) & eachByte(15);
      const Ints packed = low | shiftLeft(shiftRight(tops, i / 4 * 2) & eachByte(3), 4);
      putScale(to, i, multiply(d, toFloats(subtract(byteAt(packed, i % 4), broadcast(32)))));
    }
    for (int j = 0; j < 8; ++j) {
      for (int i = 0; i < 8; ++i) {
        const Ints low = shiftRight(from.word(8 + j / 4 * 8 + i), j % 4 * 2) & eachByte(3);
        putWeights(to, j, i, low | shiftLeft(shiftRight(from.word(i), j) & eachByte(1), 2));
      }
    }
  }
};

template <DType kType>
struct FiveBitDecoder {
  static constexpr bool kMinimum = kType == DType::Q5_1;
  static constexpr WeightKind kKind = {.zero = kMinimum ? 0 : 16, .minimum = kMinimum, .top = 31};
  // Bits 4 * word … + 3 as 0 or 16 in each byte.
  static Ints fifth(Ints bits, int word) { return shiftLeft(spreadBits(shiftRight(bits, 4 * word) & broadcast(15)), 4); }
  static void decode(const PackedBlocks<kType>& from, Unpacked& to, int group) {
    constexpr int kBits = kMinimum ? 1 : 0;
    if constexpr (kMinimum) {
      putScale(to, group, halvesOfWords(from.word(0)));
      putMinimum(to, group, halvesOfWords(shiftRight(from.word(0), 16)));
    } else {
      putScale(to, group, from.restHalf());
    }
    const Ints bits = from.word(kBits);
    for (int i = 0; i < 4; ++i) {
      const Ints both = from.word(kBits + 1 + i);
      putWeights(to, group, i, lowNibbles(both) | fifth(bits, i));
      putWeights(to, group, i + 4, highNibbles(both) | fifth(bits, i + 4));
    }
  }
};
template <>
struct Decoder<DType::Q5_0> : FiveBitDecoder<DType::Q5_0> {};
template <>
struct Decoder<DType::Q5_1> : FiveBitDecoder<DType::Q5_1> {};

template <>
struct Decoder<DType::IQ4_NL> {
  static constexpr WeightKind kKind = {.zero = 128};
  static void decode(const PackedBlocks<DType::IQ4_NL>& from, Unpacked& to, int group) {
    putScale(to, group, from.restHalf());
    for (int i = 0; i < 4; ++i) {
      const Ints both = from.word(i), flip = eachByte(-128);
      putWeights(to, group, i, lookUp(kIq4Values.data(), lowNibbles(both)) ^ flip);
      putWeights(to, group, i + 4, lookUp(kIq4Values.data(), highNibbles(both)) ^ flip);
    }
  }
};

template <>
struct Decoder<DType::IQ4_XS> {
  static constexpr WeightKind kKind = {.zero = 128};
  static void decode(const PackedBlocks<DType::IQ4_XS>& from, Unpacked& to, int) {
    const Ints factors = from.word(0), lows = from.word(1), flip = eachByte(-128);
    const Floats d = halvesOfWords(factors);
    for (int j = 0; j < 8; ++j) {
      const Ints scale = (shiftRight(lows, 4 * j) & broadcast(15)) | shiftLeft(shiftRight(factors, 16 + 2 * j) & broadcast(3), 4);
      putScale(to, j, multiply(d, toFloats(subtract(scale, broadcast(32)))));
      for (int i = 0; i < 4; ++i) {
        const Ints both = from.word(2 + j * 4 + i);
        putWeights(to, j, i, lookUp(kIq4Values.data(), lowNibbles(both)) ^ flip);
        putWeights(to, j, i + 4, lookUp(kIq4Values.data(), highNibbles(both)) ^ flip);
      }
    }
  }
};

template <>
struct Decoder<DType::MXFP4> {
  static constexpr WeightKind kKind = {.zero = 16, .top = 31};
  static void decode(const PackedBlocks<DType::MXFP4>& from, Unpacked& to, int group) {
    // Half of 2^(e - 127); below e = 2 that is subnormal.
    const auto e = reinterpret_cast<Words>(bytesToInts(from.rest()));
    const auto small = reinterpret_cast<Words>(broadcast(0x00200000)) << e;
    const Words bits = e < 2 ? small : (e - 1) << 23;
    putScale(to, group, asFloats(reinterpret_cast<Ints>(bits)));
    for (int i = 0; i < 4; ++i) {
      const Ints both = from.word(i);
      putWeights(to, group, i, addBytes(lookUp(kDoubledFp4Values.data(), lowNibbles(both)), eachByte(16)));
      putWeights(to, group, i + 4, addBytes(lookUp(kDoubledFp4Values.data(), highNibbles(both)), eachByte(16)));
    }
  }
};

// d * (0.5 + scale) * factor
inline Floats halfStepScale(Floats d, Ints scale, float factor) {
  return multiply(multiply(d, add(toFloats(scale), broadcast(0.5f))), broadcast(factor));
}
// Eight weights of a codebook with entries of 8 bytes.
inline void putSignedRun(Unpacked& to, int group, int run, DType book, Ints index, Ints signs) {
  const Ints at = shiftLeft(index, 1);
  const int8_t* entries = codebook(book);
  putWeights(to, group, 2 * run, signedPlus64(gatherWords(entries, at), signs & broadcast(15)));
  putWeights(to, group, 2 * run + 1, signedPlus64(gatherWords(entries + 4, at), shiftRight(signs, 4)));
}

template <>
struct Decoder<DType::IQ2_XXS> {
  static constexpr WeightKind kKind = {.zero = 64, .top = 127};
  static void decode(const PackedBlocks<DType::IQ2_XXS>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    for (int j = 0; j < 8; ++j) {
      const Ints indices = from.word(2 * j), signs = from.word(2 * j + 1);
      putScale(to, j, halfStepScale(d, shiftRight(signs, 28), 0.25f));
      for (int l = 0; l < 4; ++l)
        putSignedRun(to, j, l, DType::IQ2_XXS, byteAt(indices, l), eightSigns(shiftRight(signs, 7 * l) & broadcast(127)));
    }
  }
};

template <>
struct Decoder<DType::IQ2_XS> {
  static constexpr WeightKind kKind = {.halves = true, .zero = 64, .top = 127};
  static void decode(const PackedBlocks<DType::IQ2_XS>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    for (int j = 0; j < 8; ++j) {
      const Ints scales = byteAt(from.word(16 + j / 4), j % 4);
      putScale(to, 2 * j, halfStepScale(d, scales & broadcast(15), 0.25f));
      putScale(to, 2 * j + 1, halfStepScale(d, shiftRight(scales, 4), 0.25f));
      for (int l = 0; l < 4; ++l) {
        const Ints code = shiftRight(from.word(2 * j + l / 2), l % 2 * 16) & broadcast(0xffff);
        putSignedRun(to, j, l, DType::IQ2_XS, code & broadcast(511), eightSigns(shiftRight(code, 9)));
      }
    }
  }
};

template <>
struct Decoder<DType::IQ2_S> {
  static constexpr WeightKind kKind = {.halves = true, .zero = 64, .top = 127};
  static void decode(const PackedBlocks<DType::IQ2_S>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    for (int j = 0; j < 8; ++j) {
      const Ints scales = byteAt(from.word(18 + j / 4), j % 4), tops = byteAt(from.word(16 + j / 4), j % 4);
      putScale(to, 2 * j, halfStepScale(d, scales & broadcast(15), 0.25f));
      putScale(to, 2 * j + 1, halfStepScale(d, shiftRight(scales, 4), 0.25f));
      for (int l = 0; l < 4; ++l) {
        const Ints index = byteAt(from.word(j), l) | shiftLeft(shiftRight(tops, 2 * l) & broadcast(3), 8);
        putSignedRun(to, j, l, DType::IQ2_S, index, byteAt(from.word(8 + j), l));
      }
    }
  }
};

template <>
struct Decoder<DType::IQ3_XXS> {
  static constexpr WeightKind kKind = {.zero = 64, .top = 127};
  static void decode(const PackedBlocks<DType::IQ3_XXS>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    const int8_t* entries = codebook(DType::IQ3_XXS);
    for (int j = 0; j < 8; ++j) {
      const Ints signs = from.word(16 + j);
      putScale(to, j, halfStepScale(d, shiftRight(signs, 28), 0.5f));
      for (int l = 0; l < 4; ++l) {
        const Ints eight = eightSigns(shiftRight(signs, 7 * l) & broadcast(127)), indices = from.word(2 * j + l / 2);
        putWeights(to, j, 2 * l, signedPlus64(gatherWords(entries, byteAt(indices, l % 2 * 2)), eight & broadcast(15)));
        putWeights(to, j, 2 * l + 1, signedPlus64(gatherWords(entries, byteAt(indices, l % 2 * 2 + 1)), shiftRight(eight, 4)));
      }
    }
  }
};

template <>
struct Decoder<DType::IQ3_S> {
  static constexpr WeightKind kKind = {.zero = 64, .top = 127};
  static void decode(const PackedBlocks<DType::IQ3_S>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    const int8_t* entries = codebook(DType::IQ3_S);
    for (int j = 0; j < 8; ++j) {
      const Ints scale = shiftRight(from.word(26), 4 * j) & broadcast(15);
      putScale(to, j, multiply(d, toFloats(shiftLeft(scale, 1) | broadcast(1))));
      const Ints ninth = byteAt(from.word(16 + j / 4), j % 4);
      for (int i = 0; i < 8; ++i) {
        const Ints index = byteAt(from.word(2 * j + i / 4), i % 4) | shiftLeft(shiftRight(ninth, i) & broadcast(1), 8);
        putWeights(to, j, i, signedPlus64(gatherWords(entries, index), shiftRight(from.word(18 + j), 4 * i) & broadcast(15)));
      }
    }
  }
};

// Eight times (a digit of -1, 0 or 1, plus or minus an eighth), plus 16.
inline void putShiftedRun(Unpacked& to, int group, int run, Ints index, Ints negative) {
  const Ints at = shiftLeft(index, 1),
             shift = subtract(eachByte(17), reinterpret_cast<Ints>(reinterpret_cast<Words>(negative) * 0x02020202u));
  const int8_t* entries = codebook(DType::IQ1_S);
  for (int i = 0; i < 2; ++i) {
    // Digits -1, 0, 1 are 255, 0, 1: shifted within their bytes they are -8, 0, 8.
    const Ints digits = shiftLeft(gatherWords(entries + 4 * i, at) & eachByte(31), 3);
    putWeights(to, group, 2 * run + i, addBytes(digits, shift));
  }
}

template <>
struct Decoder<DType::IQ1_S> {
  static constexpr WeightKind kKind = {.zero = 16, .top = 31};
  static void decode(const PackedBlocks<DType::IQ1_S>& from, Unpacked& to, int) {
    const Floats d = multiply(from.restHalf(), broadcast(0.125f));
    for (int j = 0; j < 8; ++j) {
      const Ints high = shiftRight(from.word(8 + j / 2), j % 2 * 16) & broadcast(0xffff);
      putScale(to, j, multiply(d, toFloats((shiftRight(high, 11) & broadcast(14)) | broadcast(1))));
      for (int l = 0; l < 4; ++l) {
        const Ints index = byteAt(from.word(j), l) | shiftLeft(shiftRight(high, 3 * l) & broadcast(7), 8);
        putShiftedRun(to, j, l, index, shiftRight(high, 15));
      }
    }
  }
};

template <>
struct Decoder<DType::IQ1_M> {
  static constexpr WeightKind kKind = {.halves = true, .zero = 16, .top = 31};
  static void decode(const PackedBlocks<DType::IQ1_M>& from, Unpacked& to, int) {
    const Ints a = from.word(12), b = from.word(13), nibble = broadcast(15);
    const Ints bits = (shiftRight(a, 12) & nibble) | shiftLeft(shiftRight(a, 28), 4) | shiftLeft(shiftRight(b, 12) & nibble, 8) |
                      shiftLeft(shiftRight(b, 28), 12);
    const Floats d = multiply(halvesOfWords(bits), broadcast(0.125f));
    for (int i = 0; i < 16; ++i) {
      const Ints scale = shiftRight(i < 8 ? a : b, i / 4 % 2 * 16 + i % 4 * 3) & broadcast(7);
      putScale(to, i, multiply(d, toFloats(shiftLeft(scale, 1) | broadcast(1))));
    }
    for (int j = 0; j < 8; ++j) {
      for (int l = 0; l < 4; ++l) {
        const Ints high = shiftRight(from.word(8 + j / 2), j % 2 * 16 + l * 4) & nibble;
        const Ints index = byteAt(from.word(j), l) | shiftLeft(high & broadcast(7), 8);
        putShiftedRun(to, j, l, index, shiftRight(high, 3));
      }
    }
  }
};

// Ternary digits plus 7: 8 stands for zero.
template <>
struct Decoder<DType::TQ1_0> {
  static constexpr WeightKind kKind = {.zero = 8, .top = 15};
  static Ints times(Ints shorts, uint16_t factor) { return reinterpret_cast<Ints>(reinterpret_cast<Shorts>(shorts) * factor); }
  // Digit n of the bytes 0 and 2 of each word.
  static Ints evenDigits(Ints word, uint16_t power) {
    const Ints even = broadcast(0x00ff00ff);
    return reinterpret_cast<Ints>(reinterpret_cast<Shorts>(times(times(word & even, power) & even, 3)) >> 8);
  }
  static Ints digits(Ints word, int n) {
    constexpr uint16_t kPowers[] = {1, 3, 9, 27, 81};
    return addBytes(evenDigits(word, kPowers[n]) | shiftLeft(evenDigits(shiftRight(word, 8), kPowers[n]), 8), eachByte(7));
  }
  static void decode(const PackedBlocks<DType::TQ1_0>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    for (int j = 0; j < 8; ++j) putScale(to, j, d);
    for (int n = 0; n < 5; ++n) {
      for (int i = 0; i < 8; ++i) putWeights(to, n, i, digits(from.word(i), n));
      for (int i = 0; i < 4; ++i) putWeights(to, 5 + n / 2, n % 2 * 4 + i, digits(from.word(8 + i), n));
    }
    for (int n = 0; n < 4; ++n) putWeights(to, 7, 4 + n, digits(from.word(12), n));
  }
};

template <>
struct Decoder<DType::TQ2_0> {
  static constexpr WeightKind kKind = {.zero = 8, .top = 15};
  static void decode(const PackedBlocks<DType::TQ2_0>& from, Unpacked& to, int) {
    const Floats d = from.restHalf();
    for (int j = 0; j < 8; ++j) {
      putScale(to, j, d);
      for (int i = 0; i < 8; ++i)
        putWeights(to, j, i, addBytes(shiftRight(from.word(j / 4 * 8 + i), j % 4 * 2) & eachByte(3), eachByte(7)));
    }
  }
};

// Columns 32 * first … of `count` (8 at most) groups of 32; first is a multiple of 8.
template <DType kType>
void unpack(const Stretch& stretch, int64_t first, int count, Unpacked& to) {
  using Blocks = PackedBlocks<kType>;
  if constexpr (Blocks::kGroups == 1) {
    for (int group = 0; group < count; ++group) {
      const Blocks from = {stretch, first + group};
      from.prefetch();
      Decoder<kType>::decode(from, to, group);
    }
  } else {
    const Blocks from = {stretch, first / 8};
    from.prefetch();
    Decoder<kType>::decode(from, to, 0);
  }
}

// One row group as floats (in, 16).
template <DType kType>
void groupToFloats(const std::byte* group, int64_t in, float* to) {
  constexpr WeightKind kKind = Decoder<kType>::kKind;
  Unpacked unpacked;
  for (int lane = 0; lane < kGroupRows; lane += kLanes) {
    const Stretch stretch = {reinterpret_cast<const uint8_t*>(group) + lane * 4, in / dtypeInfo(kType).blockElements, lane};
    for (int64_t first = 0; first < in / 32; first += 8) {
      const int count = static_cast<int>(std::min<int64_t>(8, in / 32 - first));
      unpack<kType>(stretch, first, count, unpacked);
      for (int i = 0; i < count * 8; ++i) {
        const int scaleIndex = kKind.halves ? i / 4 : i / 8;
        const Floats scale = loadFloats(unpacked.scales + scaleIndex * kLanes);
        const Floats minimum = kKind.minimum ? loadFloats(unpacked.minimums + scaleIndex * kLanes) : zero();
        const Ints word = load(unpacked.weights + i * kLanes * 4);
        for (int b = 0; b < 4; ++b) {
          const Floats value = toFloats(subtract(byteAt(word, b), broadcast(kKind.zero)));
          store(to + (first * 32 + i * 4 + b) * kGroupRows + lane, fma(scale, value, minimum));
        }
      }
    }
  }
}

// acc (T, kLanes) += products with `count` groups of 32 activations.
template <WeightKind kKind, int T>
__attribute__((noinline)) void dotUnpacked(const Unpacked& from, int count, const uint8_t* block, float* acc) {
  Floats sums[T];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) sums[t] = loadFloats(acc + t * kLanes);
  const uint8_t* words = from.weights;
  for (int group = 0; group < count; ++group, words += 8 * kLanes * 4, block += T * kInt8BlockBytes) {
    Ints weights[8];
    for (int i = 0; i < 8; ++i) weights[i] = load(words + i * kLanes * 4);
    const Int8Block<T> inputs(block);
    if constexpr (!kKind.halves) {
      const Floats scale = loadFloats(from.scales + group * kLanes);
      const Floats minimum = kKind.minimum ? loadFloats(from.minimums + group * kLanes) : zero();
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        Ints start = broadcast(int32_t{0});
        if constexpr (kKind.zero == 128) start = broadcast(inputs.minus128[t]);
        if constexpr (kKind.zero == 8) start = broadcast(inputs.minus8[t]);
        if constexpr (kKind.zero == 16) start = broadcast(inputs.minus8[t] * 2);
        if constexpr (kKind.zero == 64) start = broadcast(inputs.minus8[t] * 8);
        const Ints dot = dotWords<kKind.top, 8>(start, weights, inputs.quants + 32 * t);
        sums[t] = fma(toFloats(dot), multiply(scale, broadcast(inputs.scale[t])), sums[t]);
        if constexpr (kKind.minimum) sums[t] = fma(minimum, broadcast(inputs.sum[t]), sums[t]);
      }
    } else {
      const Floats scales[2] = {loadFloats(from.scales + 2 * group * kLanes), loadFloats(from.scales + (2 * group + 1) * kLanes)};
      Floats minimums[2] = {zero(), zero()};
      if constexpr (kKind.minimum)
        for (int half = 0; half < 2; ++half) minimums[half] = loadFloats(from.minimums + (2 * group + half) * kLanes);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        for (int half = 0; half < 2; ++half) {
          Ints start = broadcast(int32_t{0});
          if constexpr (kKind.zero > 0) start = broadcast(inputs.minus4[half][t] * (kKind.zero / 4));
          const Ints dot = dotWords<kKind.top, 4>(start, weights + 4 * half, inputs.quants + 32 * t + 16 * half);
          sums[t] = fma(toFloats(dot), multiply(scales[half], broadcast(inputs.scale[t])), sums[t]);
          if constexpr (kKind.minimum) sums[t] = fma(minimums[half], broadcast(inputs.halfSum[half][t]), sums[t]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) store(acc + t * kLanes, sums[t]);
}

template <DType kType, int T>
void blockKernel(const LinearTile& tile) {
  Unpacked unpacked;
  const int64_t groups32 = tile.in / 32;
  for (int64_t group = 0; group < tile.groupCount; ++group) {
    const auto* begin = reinterpret_cast<const uint8_t*>(tile.groups) + group * tile.groupBytes;
    for (int lane = 0; lane < kGroupRows; lane += kLanes) {
      const Stretch stretch = {begin + lane * 4, tile.in / dtypeInfo(kType).blockElements, lane};
      const auto* block = static_cast<const uint8_t*>(tile.activations);
      alignas(64) float sums[T * kLanes] = {};
      for (int64_t first = 0; first < groups32; first += 8) {
        const int count = static_cast<int>(std::min<int64_t>(8, groups32 - first));
        unpack<kType>(stretch, first, count, unpacked);
        dotUnpacked<Decoder<kType>::kKind, T>(unpacked, count, block, sums);
        block += count * T * kInt8BlockBytes;
      }
      const int64_t row = group * kGroupRows + lane;
      const Floats bias = tile.bias ? loadFloats(tile.bias + row) : zero();
      for (int t = 0; t < T; ++t)
        if (t < tile.tokens) store(tile.out + t * tile.outStride + row, add(loadFloats(sums + t * kLanes), bias));
    }
  }
}

// One body for each type: calls `what.template operator()<TYPE>()`.
template <class Result, class What>
Result forBlockType(DType dtype, const What& what) {
  switch (dtype) {
    case DType::Q5_0:
      return what.template operator()<DType::Q5_0>();
    case DType::Q5_1:
      return what.template operator()<DType::Q5_1>();
    case DType::Q2_K:
      return what.template operator()<DType::Q2_K>();
    case DType::Q3_K:
      return what.template operator()<DType::Q3_K>();
    case DType::Q4_K:
      return what.template operator()<DType::Q4_K>();
    case DType::Q5_K:
      return what.template operator()<DType::Q5_K>();
    case DType::Q6_K:
      return what.template operator()<DType::Q6_K>();
    case DType::IQ4_NL:
      return what.template operator()<DType::IQ4_NL>();
    case DType::IQ4_XS:
      return what.template operator()<DType::IQ4_XS>();
    case DType::MXFP4:
      return what.template operator()<DType::MXFP4>();
    case DType::IQ2_XXS:
      return what.template operator()<DType::IQ2_XXS>();
    case DType::IQ2_XS:
      return what.template operator()<DType::IQ2_XS>();
    case DType::IQ2_S:
      return what.template operator()<DType::IQ2_S>();
    case DType::IQ3_XXS:
      return what.template operator()<DType::IQ3_XXS>();
    case DType::IQ3_S:
      return what.template operator()<DType::IQ3_S>();
    case DType::IQ1_S:
      return what.template operator()<DType::IQ1_S>();
    case DType::IQ1_M:
      return what.template operator()<DType::IQ1_M>();
    case DType::TQ1_0:
      return what.template operator()<DType::TQ1_0>();
    case DType::TQ2_0:
      return what.template operator()<DType::TQ2_0>();
    default:
      return Result{};
  }
}

template <DType kType>
LinearKernel blockKernelForWidth(size_t width) {
  const auto table = []<size_t... index>(std::index_sequence<index...>) {
    return std::array<LinearKernel, sizeof...(index)>{blockKernel<kType, kWidths[index]>...};
  }
  (std::make_index_sequence<std::size(kWidths)>());
  return table[width];
}

[[maybe_unused]] GroupToFloats findGroupToFloats(DType dtype) {
  return forBlockType<GroupToFloats>(dtype, []<DType kType>() -> GroupToFloats { return groupToFloats<kType>; });
}
