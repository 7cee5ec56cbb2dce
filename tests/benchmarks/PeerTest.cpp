// The protocol between `ops` and its peers, with a script that answers without measuring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/mnist/Runfile.h"
#include "benchmarks/Folder.h"
#include "benchmarks/Peer.h"

namespace fl::bench {
namespace {

using ::testing::ElementsAre;
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

TEST(PeerTest, ABlockEndsWhenThePeersThreadsRest) {
  Peer peer("torch", kPython, script(), 2);
  EXPECT_EQ(peer.block("spin f32", 1), 0.0);
  EXPECT_EQ(peer.block("spinning f32", 1), 0.0);
}

TEST(PeerTest, AProcessThatEndsIsAnError) {
  Peer peer("jax", kPython, script(), 2);
  EXPECT_THAT([&] { peer.block("end f32", 1024); },
              ThrowsMessage<std::runtime_error>("--peers: jax has ended"));
}

// Interpreters that answer what a library's name asks for.
class Interpreters : public ::testing::Test {
 protected:
  // One that has these libraries only.
  std::string with(const std::string& name, const std::string& libraries) {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path) << "#!/bin/bash\n"
                           "[[ $1 != -c ]] && exec sleep 0\n"
                           "for each in "
                        << libraries
                        << "; do [[ $2 == *\\\"$each\\\"* ]] && exit 0; done\n"
                           "exit 1\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  static std::vector<std::string> names(const Peers& peers) {
    std::vector<std::string> result;
    for (const auto& peer : peers) result.push_back(peer->name());
    return result;
  }
  const Folder folder_{"fl-interpreters"};
};

TEST_F(Interpreters, PeersAreThoseThatCanBeImported) {
  const std::string none = with("none", ""), some = with("some", "mlx torch");
  EXPECT_THAT(names(startPeers(true, script(), 2, true, none, some)),
              ElementsAre("torch", "torch compile", "mlx"));
  EXPECT_THAT(names(startPeers(true, script(), 2, false, some, none)), ElementsAre("torch 1.13"));
  EXPECT_TRUE(startPeers(false, script(), 2, true, some, some).empty());
  EXPECT_THAT([&] { startPeers(true, script(), 2, true, none, "/nowhere/python"); },
              ThrowsMessage<std::runtime_error>(
                  "--peers: none is there; ./setup.sh --peers installs them"));
}

TEST(PeerTest, WithoutAnInterpreterTheErrorSaysWhatMakesOne) {
  EXPECT_THAT([] { Peer("jax", "/nowhere/python", script(), 2); },
              ThrowsMessage<std::runtime_error>(
                  "--peers: /nowhere/python is not there; ./setup.sh --peers makes it"));
}

}  // namespace
}  // namespace fl::bench
