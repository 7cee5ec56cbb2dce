// Runs apps/mnist:train as a user does, each time in an empty folder of its own, and looks at what
// it prints, its exit code and the files that it leaves.
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/mnist/Runfile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/apps/IdxFiles.h"

namespace fl::app {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Outcome {
  int exitCode;
  std::vector<std::string> out;
  std::vector<std::string> err;
  // Names of the files in the folder that it ran in.
  std::set<std::string> files;
};

std::vector<std::string> readLines(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Runs the program in `folder`; arguments and environment are words of the shell.
Outcome runTrain(const std::string& arguments, const fs::path& folder,
                 const std::string& environment = "") {
  static const std::string program = fs::absolute(runfile("apps/mnist/train"));
  const fs::path output = makeFolder("output");
  // Redirections come first, so that one among the arguments counts.
  const std::string command = "cd '" + folder.string() + "' && " + environment + " >'" +
                              (output / "out").string() + "' 2>'" + (output / "err").string() +
                              "' '" + program + "' " + arguments;
  const int status = std::system(command.c_str());
  Outcome run{WIFEXITED(status) ? WEXITSTATUS(status) : -1,
              readLines(output / "out"),
              readLines(output / "err"),
              {}};
  for (const auto& entry : fs::directory_iterator(folder)) {
    run.files.insert(entry.path().filename());
  }
  return run;
}

// The program refuses: one line that holds the words, exit code 1, nothing printed, no file left.
void expectRefusal(const std::string& arguments, const std::string& words) {
  SCOPED_TRACE(arguments);
  const Outcome run = runTrain(arguments, makeFolder("refusal"));
  EXPECT_EQ(run.exitCode, 1);
  EXPECT_THAT(run.err, ElementsAre(HasSubstr(words)));
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.files, IsEmpty());
}

double accuracyOf(const Outcome& run) {
  const std::string prefix = "test accuracy: ";
  EXPECT_THAT(run.out, testing::Not(IsEmpty()));
  if (run.out.empty() || run.out.back().rfind(prefix, 0) != 0) {
    ADD_FAILURE() << "last line: " << (run.out.empty() ? "none" : run.out.back());
    return 0;
  }
  return std::stod(run.out.back().substr(prefix.size()));
}

TEST(Train, LearnsTheDigitsAndKeepsWhatItLearned) {
  const fs::path folder = makeFolder("learn");
  const Outcome training = runTrain("--epochs=10", folder);
  EXPECT_EQ(training.exitCode, 0);
  EXPECT_THAT(training.err, IsEmpty());
  // PyTorch reaches 90.3 to 92.8 % at this point, by the seed.
  EXPECT_GE(accuracyOf(training), 88);
  // One line an epoch where nobody watches, then the files and the result.
  ASSERT_EQ(training.out.size(), 13u);
  for (int epoch = 1; epoch <= 10; ++epoch) {
    EXPECT_THAT(training.out[epoch - 1],
                AllOf(StartsWith("epoch " + std::to_string(epoch) + " of 10: loss "),
                      HasSubstr("validation error"), testing::Not(HasSubstr("\r"))));
  }
  EXPECT_THAT(training.files, ElementsAre("mnist_curve.svg", "mnist_model.bin"));
  EXPECT_THAT(readLines(folder / "mnist_curve.svg"), testing::Contains(StartsWith("<svg")));

  const Outcome evaluation = runTrain("--eval=mnist_model.bin", folder);
  EXPECT_EQ(evaluation.exitCode, 0);
  EXPECT_THAT(evaluation.err, IsEmpty());
  EXPECT_THAT(evaluation.out, ElementsAre(training.out.back()));
  EXPECT_THAT(evaluation.files, ElementsAre("mnist_curve.svg", "mnist_model.bin"));
}

// Lazy and eager mode convolve in different layouts: their models agree (AgreementTest), but for
// the last bits.
TEST(Train, GivesTheSameModelForTheSameSeedOnAnyThreads) {
  const fs::path folder = makeFolder("same");
  const auto modelOf = [&](const std::string& arguments) {
    EXPECT_EQ(runTrain("--epochs=1 " + arguments, folder).exitCode, 0) << arguments;
    std::ifstream stream(folder / "mnist_model.bin", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  };
  for (const std::string backend : {"--backend=lazy ", "--backend=eager "}) {
    const std::string model = modelOf(backend + "--seed=5 --threads=1");
    EXPECT_TRUE(model == modelOf(backend + "--seed=5 --threads=2")) << backend;
    EXPECT_FALSE(model == modelOf(backend + "--seed=6")) << backend;
  }
}

TEST(Train, ReadsImagesOfAnySize) {
  const fs::path data = makeFolder("data");
  writeDataset(data, 30, 12, 7);
  const fs::path folder = makeFolder("any size");
  const Outcome run =
      runTrain("--epochs=1 --save=m --curve=c.svg --data='" + data.string() + "'", folder);
  EXPECT_EQ(run.exitCode, 0);
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.files, ElementsAre("c.svg", "m"));
}

TEST(Train, TakesPathsFromWhereBazelRunWasCalled) {
  const fs::path called = makeFolder("called");
  const Outcome run = runTrain("--epochs=1", makeFolder("started"),
                               "BUILD_WORKING_DIRECTORY='" + called.string() + "'");
  EXPECT_EQ(run.exitCode, 0);
  EXPECT_THAT(run.files, IsEmpty());
  EXPECT_TRUE(fs::exists(called / "mnist_model.bin"));
  EXPECT_TRUE(fs::exists(called / "mnist_curve.svg"));
}

TEST(Train, RewritesALineForEachBatchOnATerminal) {
  // `script` (Debian: bsdutils, essential) gives the program a terminal.
  const std::string program = fs::absolute(runfile("apps/mnist/train"));
  const fs::path folder = makeFolder("terminal");
  const std::string command = "cd '" + folder.string() +
                              "' && script --quiet --return --command \"'" + program +
                              "' --epochs=1\" /dev/null >out </dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream stream(folder / "out");
  const std::string out(std::istreambuf_iterator<char>(stream), {});
  EXPECT_THAT(out, StartsWith("\repoch 1 of 1: batch 1 of 42, loss "));
  EXPECT_THAT(out, HasSubstr("\repoch 1 of 1: batch 42 of 42, loss "));
  // The last of them is gone before the epoch's own line is written.
  EXPECT_THAT(out, HasSubstr("\r\x1b[Kepoch 1 of 1: loss "));
}

TEST(Train, RefusesWrongFlags) {
  expectRefusal("--epochs=0", "--epochs: must be at least 1");
  expectRefusal("--batch_size=-1", "--batch_size: must be at least 1");
  expectRefusal("--learning_rate=0", "--learning_rate: must be a positive number");
  expectRefusal("--learning_rate=nan", "--learning_rate: must be a positive number");
  expectRefusal("--threads=-2", "--threads: must not be negative");
  expectRefusal("--epochs=many", "Illegal value 'many' specified for flag 'epochs'");
  expectRefusal("--epoch=3", "Unknown command line flag 'epoch'");
  expectRefusal("digits", "digits: not a flag; flags start with --");
  expectRefusal("--backend=fast", "fast");
  expectRefusal("--device=tpu", "tpu");
}

// One sentence where the driver is missing, another where fl was built without CUDA's headers.
TEST(Train, SaysWhyThereIsNoGpu) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "there is a driver";
  const Outcome run = runTrain("--epochs=1", makeFolder("refusal"), "FL_DEVICE=cuda");
  EXPECT_EQ(run.exitCode, 1);
  EXPECT_THAT(run.err, ElementsAre(HasSubstr(FL_NO_GPU)));
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.files, IsEmpty());
}

TEST(Train, RefusesBadData) {
  expectRefusal("--data=nowhere",
                "nowhere/t10k-images-idx3-ubyte: cannot be opened: No such file or directory");
  const fs::path data = makeFolder("data");
  const std::string flag = "--epochs=1 --data='" + data.string() + "'";

  writeDataset(data, 20, 8, 8);
  fs::resize_file(data / "train-images-idx3-ubyte", 1000);
  expectRefusal(flag, "train-images-idx3-ubyte: truncated: the header promises 20 x 8 x 8");

  writeDataset(data, 20, 8, 8);
  writeFile(data / "train-labels-idx1-ubyte", idxBytes({0x801, 3}, {0, 1, 2}));
  expectRefusal(flag, "train-labels-idx1-ubyte: 3 labels, but ");

  writeDataset(data, 20, 8, 8);
  fs::copy_file(data / "t10k-labels-idx1-ubyte", data / "t10k-images-idx3-ubyte",
                fs::copy_options::overwrite_existing);
  expectRefusal(flag, "t10k-images-idx3-ubyte: wrong magic number 0x801");

  writeDataset(data, 1, 8, 8);
  expectRefusal(flag, "one training image: at least two are needed");

  writeDataset(data, 20, 3, 3);
  expectRefusal(flag, "images of 3x3: the model needs at least 4x4");
}

TEST(Train, RefusesTestImagesOfAnotherSize) {
  const fs::path data = makeFolder("data");
  const fs::path other = makeFolder("other");
  writeDataset(data, 20, 8, 8);
  writeDataset(other, 20, 9, 8);
  for (const char* name : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    fs::copy_file(other / name, data / name, fs::copy_options::overwrite_existing);
  }
  expectRefusal("--data='" + data.string() + "'", "training images of 8x8, but test images of 9x8");
}

TEST(Train, RefusesFilesThatItCannotWriteBeforeItTrains) {
  expectRefusal("--save=nowhere/model", "nowhere/model: cannot be written: No such file");
  expectRefusal("--curve=nowhere/c.svg", "nowhere/c.svg: cannot be written: No such file");
  expectRefusal("--save=.", ".: cannot be written: Is a directory");
}

TEST(Train, LeavesWhatIsNoRegularFile) {
  const fs::path folder = makeFolder("kinds");
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const char* flag : {"--save=", "--curve="}) {
    expectRefusal(flag + ("'" + (folder / "fifo").string() + "'"),
                  "fifo: cannot be written: it is no regular file");
  }
  EXPECT_TRUE(fs::is_fifo(folder / "fifo"));
}

TEST(Train, RefusesOneFileForModelAndCurve) {
  expectRefusal("--save=a.bin --curve=a.bin", "--save and --curve name the same file: a.bin");
  expectRefusal("--save=a.bin --curve=./a.bin", "--save and --curve name the same file: a.bin");
}

TEST(Train, KeepsNothingWhereAPathIsEmpty) {
  const fs::path data = makeFolder("data");
  writeDataset(data, 30, 8, 8);
  const std::string flags = "--epochs=1 --data='" + data.string() + "' ";
  const Outcome none = runTrain(flags + "--save= --curve=", makeFolder("none"));
  EXPECT_EQ(none.exitCode, 0);
  EXPECT_THAT(none.err, IsEmpty());
  EXPECT_THAT(none.out, ElementsAre(StartsWith("epoch 1 of 1: "), StartsWith("test accuracy: ")));
  EXPECT_THAT(none.files, IsEmpty());
  const Outcome model = runTrain(flags + "--save=m --curve=", makeFolder("model"));
  EXPECT_EQ(model.exitCode, 0);
  EXPECT_THAT(model.out,
              ElementsAre(StartsWith("epoch 1 of 1: "), "model: m", StartsWith("test accuracy: ")));
  EXPECT_THAT(model.files, ElementsAre("m"));
}

TEST(Train, RefusesADeviceThatComputesNothing) {
  const std::string words = "device null computes nothing";
  expectRefusal("--device=null", words);
  expectRefusal("--device=null --eval=m", words);
  const Outcome run = runTrain("", makeFolder("null"), "FL_DEVICE=null");
  EXPECT_EQ(run.exitCode, 1);
  EXPECT_THAT(run.err, ElementsAre(HasSubstr(words)));
  EXPECT_THAT(run.files, IsEmpty());
}

TEST(Train, FailsWhereItsOutputIsLost) {
  const fs::path data = makeFolder("data");
  writeDataset(data, 30, 8, 8);
  const fs::path folder = makeFolder("full");
  const std::string flags = "--data='" + data.string() + "' ";
  for (const char* how : {"--epochs=1 --save=m --curve=", "--eval=m"}) {
    // What was trained is kept all the same.
    const Outcome run = runTrain(flags + how + " >/dev/full", folder);
    EXPECT_EQ(run.exitCode, 1) << how;
    EXPECT_THAT(run.err, ElementsAre(StartsWith("train: standard output: cannot be written")));
    EXPECT_THAT(run.files, ElementsAre("m"));
  }
}

TEST(Train, RefusesToEvaluateWhatIsNoModel) {
  expectRefusal("--eval=missing.bin", "missing.bin: cannot be opened: No such file or directory");
  const fs::path file = makeFolder("models") / "text";
  writeFile(file, "not a model at all, but a text");
  expectRefusal("--eval='" + file.string() + "'", "text: is no file that fl::save has written");
}

TEST(Train, StopsWhenTheLossIsLost) {
  const fs::path folder = makeFolder("diverge");
  const Outcome run = runTrain("--learning_rate=1e30 --epochs=3", folder);
  EXPECT_EQ(run.exitCode, 1);
  EXPECT_THAT(run.err, ElementsAre(HasSubstr("the loss is not finite; a smaller --learning_rate")));
  EXPECT_THAT(run.files, IsEmpty());
}

}  // namespace
}  // namespace fl::app
