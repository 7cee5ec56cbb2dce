// startProfile() and stopProfile(): the trace's events, lanes, names and lines, and the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <regex>
#include <set>
#include <thread>

#include "fl/base/AtomicFile.h"
#include "fl/base/Flags.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/profile/Profile.h"
#include "fl/tensor/tensor.h"
#include "nlohmann/json.hpp"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Flags are read when the first tensor is made.
const bool compiles = [] {
  flags().jit = "sync";
  flags().cache = "off";
  return true;
}();

std::string traceFile() { return ::testing::TempDir() + "/trace.json"; }

struct Profiled {
  nlohmann::json events;
  std::string table;
};

Profiled profiled(const std::function<void()>& work) {
  startProfile(traceFile());
  work();
  ::testing::internal::CaptureStderr();
  stopProfile();
  Profiled result{{}, ::testing::internal::GetCapturedStderr()};
  std::ifstream(traceFile()) >> result.events;
  return result;
}

std::vector<nlohmann::json> ofLane(const nlohmann::json& events, const std::string& lane) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& event : events) {
    if (event.value("cat", "") == lane) {
      found.push_back(event);
    }
  }
  return found;
}

std::vector<std::string> namesOf(const std::vector<nlohmann::json>& events) {
  std::vector<std::string> names;
  for (const nlohmann::json& event : events) {
    names.push_back(event["name"]);
  }
  return names;
}

bool isInside(const nlohmann::json& inner, const nlohmann::json& outer) {
  constexpr double kRounding = 1e-3;  // microseconds
  return inner["tid"] == outer["tid"] && inner["ts"] >= outer["ts"] &&
         inner["ts"].get<double>() + inner["dur"].get<double>() <=
             outer["ts"].get<double>() + outer["dur"].get<double>() + kRounding;
}

// A product and, in one kernel, what follows it.
void step() {
  const Tensor x = full({64, 64}, 0.5f), y = full({64, 64}, 0.25f);
  Tensor z = matmul(x, y);
  z = tanh(z * 2) + y;
  z.toHostVector<float>();
}

TEST(ProfileTest, LanesHaveTheirEvents) {
  const auto [events, table] = profiled([] { step(); });
  const auto recorded = ofLane(events, "recording"), planned = ofLane(events, "planning");
  ASSERT_EQ(recorded.size(), 1);
  EXPECT_EQ(recorded[0]["name"], "6 operators");
  EXPECT_THAT(recorded[0]["args"]["line"], HasSubstr("ProfileTest.cpp:"));
  EXPECT_THAT(namesOf(planned), AllOf(Contains("cse"), Contains("fuse"), Contains("pack"),
                                      Contains("plan of 6 operators")));
  for (const nlohmann::json& pass : planned) {
    EXPECT_TRUE(isInside(pass, planned.back())) << pass;
  }
  const std::vector<std::string> compiled = namesOf(ofLane(events, "compiling"));
  const auto map = std::ranges::find_if(
      compiled, [](const std::string& name) { return name.starts_with("map mul+tanh+add "); });
  ASSERT_NE(map, compiled.end());
  const auto ran = ofLane(events, "running");
  EXPECT_THAT(namesOf(ran),
              AllOf(Contains("library matmul and " + *map), Contains("plan of 4 steps")));
  for (const nlohmann::json& event : ran) {
    EXPECT_THAT(event["args"]["line"], HasSubstr("ProfileTest.cpp:")) << event;
    EXPECT_TRUE(isInside(event, ran.back())) << event;
  }
}

// Of the trace; the table prints the same.
TEST(ProfileTest, TotalsAreThoseOfTheTable) {
  const auto [events, table] = profiled([] {
    for (int i = 0; i < 50; ++i) {
      step();
    }
  });
  double steps = 0;
  int products = 0;
  for (const nlohmann::json& event : ofLane(events, "running")) {
    const std::string name = event["name"];
    if (!name.starts_with("plan")) {
      steps += event["dur"].get<double>() / 1e3;
      products += name.starts_with("library matmul");
    }
  }
  std::smatch match;
  ASSERT_TRUE(std::regex_search(table, match, std::regex("of it steps ([0-9.]+) ms"))) << table;
  EXPECT_NEAR(std::stod(match[1]), steps, 0.02 * steps);
  // Lanes without what happens within an event of theirs.
  for (const std::string lane : {"recording", "planning", "compiling", "running"}) {
    double sum = 0;
    for (const nlohmann::json& event : ofLane(events, lane)) {
      const bool hasParts = lane == "planning" || lane == "running";
      const bool isWhole = !hasParts || event["name"].get<std::string>().starts_with("plan of ");
      sum += isWhole ? event["dur"].get<double>() / 1e3 : 0;
    }
    ASSERT_TRUE(std::regex_search(table, match, std::regex(" " + lane + " ([0-9.]+) ms"))) << table;
    constexpr double kPrinted = 1e-3;
    EXPECT_NEAR(std::stod(match[1]), sum, 0.02 * sum + kPrinted) << lane;
    EXPECT_TRUE(sum > 0 || lane == "planning" || lane == "compiling") << lane << " knew all plans";
  }
  EXPECT_EQ(products, 50);
  EXPECT_THAT(table,
              ::testing::ContainsRegex("\n +50 .*library matmul and .* at .*ProfileTest.cpp:"));
}

TEST(ProfileTest, WhatRunsBetweenProfilesIsInNone) {
  profiled([] { step(); });
  step();
  const auto [events, table] = profiled([] {});
  EXPECT_EQ(events.size(), 1) << "the process's name alone";
  EXPECT_THAT(table, Not(HasSubstr("matmul")));
}

profile::Label* labelOf(const std::string& name) {
  return profile::label(profile::Lane::Compiling, profile::Extent::Whole, name);
}

TEST(ProfileTest, WhatBeganBeforeAProfileIsNotInIt) {
  Tensor x = full({4}, 0.5f);
  x.toHostVector<float>();
  profiled([&] { x = x + 1; });
  x = x + 2;  // in a segment that began in the profile before
  const int64_t before = profile::now();
  const auto [events, table] = profiled([&] {
    x.toHostVector<float>();
    profile::add(labelOf("begun before"), before, profile::now());
    profile::add(labelOf("begun within"), profile::now(), profile::now());
  });
  EXPECT_TRUE(ofLane(events, "recording").empty());
  EXPECT_FALSE(ofLane(events, "running").empty());
  const std::vector<std::string> names = namesOf(events);
  EXPECT_THAT(names, AllOf(Contains("begun within"), Not(Contains("begun before"))));
  EXPECT_EQ(labelOf("begun before")->calls, 0);
  for (const nlohmann::json& event : events) EXPECT_GE(event.value("ts", 0.0), 0) << event;
}

TEST(ProfileTest, WhatEndsBehindAProfileIsInNone) {
  {
    startProfile(traceFile());
    const profile::Scope scope([] { return labelOf("straddles the end"); });
    ::testing::internal::CaptureStderr();
    stopProfile();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("compiling 0.000 ms"));
  }
  const auto [events, table] = profiled([] {});
  EXPECT_EQ(events.size(), 1) << events;
  EXPECT_EQ(labelOf("straddles the end")->calls, 0);
}

// Other threads, and fork(), go on while a trace is written: into a pipe that nobody reads yet.
TEST(ProfileTest, NothingIsHeldWhileTheTraceIsWritten) {
  const std::string folder = ::testing::TempDir() + "/pipes";
  std::filesystem::create_directories(folder);
  const std::string ending = [] {  // of the next file that is not complete
    const std::string name = AtomicFile(::testing::TempDir() + "/any").partial();
    const size_t begin = name.rfind(".partial."), number = name.rfind('.') + 1;
    return name.substr(begin, number - begin) + std::to_string(std::stoi(name.substr(number)) + 1);
  }();
  const std::string file = folder + "/trace.json", pipe = file + ending;
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  startProfile(file);
  std::thread writer([] { stopProfile(); });
  while (profile::isActive()) std::this_thread::yield();
  auto label = std::async(std::launch::async, [] { return labelOf("made meanwhile")->name; });
  const bool isMade = label.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  std::ifstream(pipe).ignore(std::numeric_limits<std::streamsize>::max());
  writer.join();
  EXPECT_TRUE(isMade);
}

TEST(ProfileTest, ThreadsHaveLanesOfTheirOwn) {
  const auto [events, table] = profiled([] {
    step();
    std::thread(step).join();
  });
  const auto ran = ofLane(events, "running");
  EXPECT_NE(ran.front()["tid"], ran.back()["tid"]);
  std::vector<std::string> names;
  for (const nlohmann::json& event : events) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      names.push_back(event["args"]["name"]);
    }
  }
  EXPECT_THAT(names, AllOf(Contains(StartsWith("running, thread")),
                           Contains(StartsWith("recording, thread"))));
}

// Rows of different lanes are different ones, and threads that ended have none in later profiles.
TEST(ProfileTest, ThreadsMayBeMany) {
  constexpr size_t kThreads = 10'050;
  const auto addOne = [](profile::Lane lane) {
    profile::Label* label = profile::label(lane, profile::Extent::Part, "short");
    profile::add(label, profile::now(), profile::now());
  };
  const auto [events, table] = profiled([&] {
    for (size_t i = 0; i < kThreads; ++i) std::thread(addOne, profile::Lane::Compiling).join();
    addOne(profile::Lane::Running);
  });
  std::set<int64_t> rows;
  for (const nlohmann::json& event : events)
    if (event.value("name", "") == "short") rows.insert(event["tid"].get<int64_t>());
  EXPECT_EQ(rows.size(), kThreads + 1);
  const auto [later, laterTable] =
      profiled([&] { std::thread(addOne, profile::Lane::Compiling).join(); });
  size_t row = kThreads;
  for (const nlohmann::json& event : ofLane(later, "compiling")) row = event["tid"].get<size_t>();
  EXPECT_LT(row, 100u);
}

TEST(ProfileTest, EagerOperatorsAreSteps) {
  const auto [events, table] = profiled([] {
    const BackendScope eager("eager");
    const Tensor x = full({256}, 0.5f);
    (exp(x) + x).toHostVector<float>();
    exp(x).toHostVector<float>();
  });
  EXPECT_THAT(namesOf(ofLane(events, "running")),
              AllOf(Contains(StartsWith("map exp ")), Contains(StartsWith("map add "))));
  EXPECT_TRUE(ofLane(events, "planning").empty());
  // One kernel for all calls, each with its own line.
  std::set<std::string> lines;
  for (const nlohmann::json& event : ofLane(events, "running")) {
    EXPECT_THAT(event["args"]["line"], HasSubstr("ProfileTest.cpp:")) << event;
    if (event["name"].get<std::string>().starts_with("map exp "))
      lines.insert(event["args"]["line"]);
  }
  EXPECT_EQ(lines.size(), 2u);
}

// What is copied is no operator of the program's; what it is copied for is.
TEST(ProfileTest, CopiesHaveTheLineOfWhatTheyAreFor) {
  const Tensor x = full({64}, 0.5f);
  x.toHostVector<float>();
  const int line = __LINE__ + 3;
  const auto [events, table] = profiled([&] {
    Tensor y = x;
    y(3) = 1.0f;
    y = cumsum(y, 0);  // nobody has what was copied
    y.toHostVector<float>();
  });
  int copies = 0;
  for (const nlohmann::json& event : ofLane(events, "running")) {
    if (!event["name"].get<std::string>().starts_with("map copy")) continue;
    EXPECT_THAT(event["args"]["line"], HasSubstr("ProfileTest.cpp:" + std::to_string(line)));
    ++copies;
  }
  EXPECT_EQ(copies, 2) << events;  // all of it, then a number to its place
}

TEST(ProfileTest, Errors) {
  EXPECT_THAT(test::errorOf<std::runtime_error>([] { startProfile("/nowhere/trace.json"); }),
              HasSubstr("/nowhere"));
  EXPECT_FALSE(profile::isActive());
  startProfile(traceFile());
  EXPECT_THAT(test::errorOf([] { startProfile("other.json"); }),
              AllOf(HasSubstr("startProfile(\"other.json\")"), HasSubstr("has not been stopped")));
  stopProfile();
  EXPECT_NO_THROW(stopProfile());
}

}  // namespace
}  // namespace fl::testing
