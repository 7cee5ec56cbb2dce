// The protocol between `ops` and its peers, with a script that answers without measuring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "apps/mnist/Runfile.h"
#include "benchmarks/Peer.h"

namespace fl::bench {
namespace {

using ::testing::ThrowsMessage;

constexpr char kPython[] = "/usr/bin/python3";

std::string script() { return app::runfile("tests/benchmarks/peer_answers.py"); }

TEST(PeerTest, AnswersAreTimesOrNone) {
  Peer peer("torch", kPython, script(), 2);
  EXPECT_EQ(peer.name(), "torch");
  EXPECT_EQ(peer.block("threads f32", 1024), 2.0);
  EXPECT_EQ(peer.block("elements f32", 4096), 4096.0);
  EXPECT_EQ(peer.block("none f32", 1024), std::nullopt);
}

TEST(PeerTest, PeersLiveSideBySide) {
  Peer one("torch", kPython, script(), 1);
  Peer two("jax", kPython, script(), 2);
  EXPECT_EQ(one.block("threads f32", 1), 1.0);
  EXPECT_EQ(two.block("threads f32", 1), 2.0);
}

TEST(PeerTest, AProcessThatEndsIsAnError) {
  Peer peer("jax", kPython, script(), 2);
  EXPECT_THAT([&] { peer.block("end f32", 1024); },
              ThrowsMessage<std::runtime_error>("--peers: jax has ended"));
}

TEST(PeerTest, WithoutAnInterpreterTheErrorSaysWhatMakesOne) {
  EXPECT_THAT([] { Peer("jax", "/nowhere/python", script(), 2); },
              ThrowsMessage<std::runtime_error>(
                  "--peers: /nowhere/python is not there; ./setup.sh --peers makes it"));
}

}  // namespace
}  // namespace fl::bench
