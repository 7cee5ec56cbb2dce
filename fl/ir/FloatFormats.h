// What the formulas of VectorMath.h know of each float format: its layout, and polynomials, minimax
// fits made with Sollya's fpminimax and remez for the intervals stated beside them.
#pragma once

#include <cstdint>

namespace fl::ir::vm::detail {

// Facts and polynomials of one float format. Coefficients stand highest power first.
struct Single {
  static constexpr bool kIsShort = false;
  static constexpr int kWidth = 32;
  static constexpr int kMantissa = 23;
  static constexpr int kBias = 127;
  static constexpr double kMinNormal = 0x1p-126;
  static constexpr int64_t kSqrtHalfBits = 0x3f3504f3;
  static constexpr double kLn2Hi = 0x1.62e4p-1, kLn2Lo = 0x1.7f7d1cp-20;
  static constexpr double kHalfPi[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
  // From here on an angle is huge. Its turns are the sum of its products with these pieces, 28 bits
  // each, of 1 / (2 pi); below kFewTurns the first five tell, from there on the last five.
  static constexpr double kHugeAngle = 1e5, kFewTurns = 0x1p83;
  static constexpr double kInverseTurn[] = {0x1.45f306cp-3,  0x1.c9c882ap-31,  0x1.4fe13a8p-61,
                                            0x1.f47d4dp-88,  0x1.bb81b6cp-115, 0x1.4acc9ep-145,
                                            0x1.0e4107cp-172};
  static constexpr double kThirdHi = 0x1.555556p-2, kThirdLo = -0x1.555556p-27;
  // exp gives 0 below and infinity above.
  static constexpr double kExpLow = -104, kExpHigh = 89;
  // (e^r - 1 - r) / r^2, |r| <= 0.3475
  static constexpr double kExp[] = {0x1.9ab65p-13, 0x1.6d53d4p-10, 0x1.1115a8p-7,
                                    0x1.5554e2p-5, 0x1.555552p-3,  0x1p-1};
  // (log((1 + s) / (1 - s)) - 2s) / s^3 in s^2, |s| <= 0.1718
  static constexpr double kLog[] = {0x1.ec004ep-3, 0x1.23f252p-2, 0x1.999bd2p-2, 0x1.555554p-1};
  // (atanh(s) / s - 1) / s^2 - 1/3 in s^2, over s^2
  static constexpr double kAtanh[] = {0x1.dfa64ap-4, 0x1.24527p-3, 0x1.999ap-3};
  // (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.56; tanh is 1 above kTanhHigh
  static constexpr double kTanhHigh = 10;
  static constexpr double kTanh[] = {-0x1.958c74p-8, 0x1.584238p-6, -0x1.b90a76p-5, 0x1.110c7p-3,
                                     -0x1.555548p-2};
  // (sin(r) / r - 1) / r^2 and ((cos(r) - 1) / r^2 + 1/2) / r^2 in r^2, |r| <= 0.8
  static constexpr double kSin[] = {0x1.76878cp-19, -0x1.a0439cp-13, 0x1.11116p-7, -0x1.555556p-3};
  static constexpr double kCos[] = {0x1.999a6cp-16, -0x1.6c0b08p-10, 0x1.555548p-5};
  // erf(x) / x - 1 in x^2, |x| <= kErfSplit
  static constexpr double kErfSplit = 0.94;
  static constexpr double kErfSmall[] = {0x1.59589p-14,  -0x1.a9337p-11, 0x1.54a9fp-8,
                                         -0x1.b80b72p-6, 0x1.ce2de2p-4,  -0x1.812742p-2,
                                         0x1.06eba8p-3};
  // log(erfc(x)) in x weighted by erfc(x), 0.84 <= x <= kErfHigh; erf is 1 above
  static constexpr double kErfHigh = 4.1;
  static constexpr double kErfLarge[] = {0x1.aad972p-13, -0x1.98872p-9,  0x1.70e7fp-6,
                                         -0x1.ac2002p-4, -0x1.45e5eap-1, -0x1.20c8aep0,
                                         -0x1.b3c8bep-14};
};

// f32 numbers that are rounded to a 16-bit float: what is off by 2^-17 adds a fiftieth of the ulp
// of one at most (f16; of bf16 much less).
struct Short : Single {
  static constexpr bool kIsShort = true;
  static constexpr double kLn2Hi = 0x1.62e43p-1;  // alone
  static constexpr double kExp[] = {0x1.522176p-5, 0x1.571f18p-3, 0x1.0006c6p-1};
  // log(1 + f) / f, sqrt(1/2) <= 1 + f <= sqrt(2)
  static constexpr double kLog[] = {-0x1.9de28p-4,  0x1.4c3a92p-3, -0x1.614e5p-3,  0x1.978e82p-3,
                                    -0x1.ff621cp-3, 0x1.5559dap-2, -0x1.00007ap-1, 0x1.fffffep-1};
  static constexpr double kTanh[] = {-0x1.5e4d76p-5, 0x1.0d1cb2p-3, -0x1.553bc8p-2};
  static constexpr double kSin[] = {0x1.0b4926p-7, -0x1.5542d6p-3};
  static constexpr double kCos[] = {-0x1.658de6p-10, 0x1.5548bp-5};
  static constexpr double kErfSmall[] = {0x1.df8de6p-9, -0x1.a57286p-6, 0x1.ccbb98p-4,
                                         -0x1.811cfap-2, 0x1.06eb48p-3};
  static constexpr double kErfLarge[] = {-0x1.04d0dep-5, -0x1.7f8f6cp-1, -0x1.0ba602p0,
                                         -0x1.7aa8b8p-6};
};

struct Double {
  static constexpr bool kIsShort = false;
  static constexpr int kWidth = 64;
  static constexpr int kMantissa = 52;
  static constexpr int kBias = 1023;
  static constexpr double kMinNormal = 0x1p-1022;
  static constexpr int64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  static constexpr double kLn2Hi = 0x1.62e42fefp-1, kLn2Lo = 0x1.473de6af278edp-34;
  static constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                       -0x1.f1976b7ed8fbcp-110};
  // From here on an angle is huge. These are 64 zeros, then the bits of 1 / (2 pi).
  static constexpr double kHugeAngle = 0x1p29;
  static constexpr uint64_t kInverseTurn[] = {0,
                                              0x28be60db9391054a,
                                              0x7f09d5f47d4d3770,
                                              0x36d8a5664f10e410,
                                              0x7f9458eaf7aef158,
                                              0x6dc91b8e909374b8,
                                              0x01924bba82746487,
                                              0x3f877ac72c4a69cf,
                                              0xba208d7d4baed121,
                                              0x3a671c09ad17df90,
                                              0x4e64758e60d4ce7d,
                                              0x272117e2ef7e4a0e,
                                              0xc7fe25fff7816603,
                                              0xfbcbc462d6829b47,
                                              0xdb4d9fb3c9f2c26d,
                                              0xd3d18fd9a797fa8b,
                                              0x5d49eeb1faf97c5e,
                                              0xcf41ce7de294a4ba,
                                              0x9afed7ec47e35742,
                                              0x1580cc11bf1edaea};
  static constexpr double kThirdHi = 0x1.5555555555555p-2, kThirdLo = 0x1.5555555555555p-56;
  static constexpr double kExpLow = -746, kExpHigh = 710;
  static constexpr double kExp[] = {
      0x1.ad85bb7fcf4dap-26, 0x1.28aeb476caa8dp-22, 0x1.71df22fd74365p-19, 0x1.a01998b27e796p-16,
      0x1.a01a012aa8e77p-13, 0x1.6c16c184a9d23p-10, 0x1.1111111127d09p-7,  0x1.5555555550629p-5,
      0x1.55555555554f9p-3,  0x1.000000000000ap-1};
  static constexpr double kLog[] = {
      0x1.2f171455cee48p-3, 0x1.39a017b678884p-3, 0x1.74664de26594ep-3, 0x1.c71c51c70a8a6p-3,
      0x1.2492494239a4p-2,  0x1.999999997f957p-2, 0x1.5555555555593p-1};
  static constexpr double kAtanh[] = {
      0x1.eb8b645649dd8p-5, 0x1.de23c48d68f1cp-5, 0x1.1121202518a83p-4, 0x1.3b135fb0ecbf8p-4,
      0x1.745d183ee07fep-4, 0x1.c71c71c562cacp-4, 0x1.2492492493157p-3, 0x1.9999999999995p-3};
  static constexpr double kTanhHigh = 20;
  static constexpr double kTanh[] = {
      -0x1.3f08862fa6e0bp-16, 0x1.5a3766e620591p-14, -0x1.e85009e66488dp-13, 0x1.34678f31c7cb5p-11,
      -0x1.7d8c6d809d868p-10, 0x1.d6d2586245a94p-9,  -0x1.226e2d6cd3a6bp-7,  0x1.664f484c90e02p-6,
      -0x1.ba1ba1b944192p-5,  0x1.11111111103a8p-3,  -0x1.555555555554cp-2};
  static constexpr double kSin[] = {0x1.5d6cf65ff9cf9p-33, -0x1.ae5de34ff438bp-26,
                                    0x1.71de34d0fd286p-19, -0x1.a01a019b51f18p-13,
                                    0x1.111111110f281p-7,  -0x1.5555555555545p-3};
  static constexpr double kCos[] = {-0x1.8f7e4238c61abp-37, 0x1.1ee98deec25f1p-29,
                                    -0x1.27e4f77ebfeacp-22, 0x1.a01a019befa6bp-16,
                                    -0x1.6c16c16c149a9p-10, 0x1.5555555555548p-5};
  static constexpr double kErfSplit = 0.85;
  static constexpr double kErfSmall[] = {
      -0x1.00d1d1ba44919p-30, 0x1.ef15cc710fc8cp-27, -0x1.5ef0282f3c935p-23, 0x1.b9e6cfb902308p-20,
      -0x1.f4d336dfd7b3fp-17, 0x1.f9a33a997f01ap-14, -0x1.c02db4e501e93p-11, 0x1.565bcd147fbf7p-8,
      -0x1.b82ce312b8ff6p-6,  0x1.ce2f21a0438d7p-4,  -0x1.812746b037ap-2,    0x1.06eba8214db69p-3};
  static constexpr double kErfHigh = 6;
  static constexpr double kErfLarge[] = {
      -0x1.224310d5b2b4ap-37, 0x1.6b561cd242091p-32,  -0x1.a67b629c156a5p-28,
      0x1.2e379a033d389p-24,  -0x1.283cc32e3367bp-21, 0x1.a142c2b42adecp-19,
      -0x1.a9aae7a2f936cp-17, 0x1.2b2653ead292cp-15,  -0x1.b7843e9b035c5p-15,
      -0x1.2cc9f1f9733bfp-14, 0x1.6075d259f6383p-11,  -0x1.d6ddd4d8dfa1fp-10,
      0x1.384d34d04679dp-12,  0x1.3874674386247p-6,   -0x1.a4d8840aa6e0bp-4,
      -0x1.45f4298fe7fe1p-1,  -0x1.20dd5880e8d63p0,   -0x1.4b132bf58b8dp-23};
};

}  // namespace fl::ir::vm::detail
