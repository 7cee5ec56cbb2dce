// Saving and loading: what comes back, what shares, and what a bad file says.
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Utils.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/nn.h"
#include "fl/tensor/Random.h"
#include "tests/nn/ModuleChecks.h"

namespace fl::test {

// A user's own layer.
class Scale : public CloneableUnaryModule<Scale> {
 public:
  explicit Scale(double factor) : factor_(factor) {
    params_ = {fl::param(full(Shape({1}), factor))};
  }
  using UnaryModule::forward;
  Variable forward(const Variable& input) override { return input * params_[0] * factor_; }
  std::string prettyString() const override { return "Scale"; }

 private:
  Scale() = default;
  FL_SAVE_LOAD_WITH_BASE(UnaryModule, factor_)
  double factor_ = 0;
};

// Two states of a user's class: what a program saved once, and what it has become.
struct OldRecord {
  int rate = 0;
  float gone = 0;

 private:
  FL_SAVE_LOAD(rate, gone)
};

struct NewRecord {
  int64_t rate = 0;
  float gone = -1;
  std::string name = "unnamed";
  int64_t halves = 7;

 private:
  FL_SAVE_LOAD(serializeAs<int>(rate), versioned(gone, 0, 0), versioned(name, 1),
               versioned(serializeAs<float>(
                             halves, [](int64_t value) { return static_cast<float>(value) / 2; },
                             [](float value) { return static_cast<int64_t>(value * 2); }),
                         1, 1))
};

}  // namespace fl::test

CEREAL_CLASS_VERSION(fl::test::NewRecord, 1)
CEREAL_REGISTER_TYPE(fl::test::Scale)

namespace fl::test {
namespace {

std::string pathOf(const std::string& name) { return ::testing::TempDir() + "/" + name; }

Sequential smallModel() {
  Sequential model;
  model.add(View({6, 6, 1, -1}));
  model.add(Conv2D(1, 2, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
  model.add(ReLU());
  model.add(Pool2D(2, 2, 2, 2));
  model.add(View({18, -1}));
  model.add(Linear(18, 4));
  model.add(Tanh());
  model.add(Dropout(0.25));
  model.add(Identity());
  model.add(Linear(4, 3, /*bias=*/false));
  model.add(Sigmoid());
  model.add(Scale(1.5));
  model.add(LogSoftmax());
  return model;
}

TEST(Serialization, ModelsComeBack) {
  Sequential model = smallModel();
  model.eval();
  const Variable x = input(rand({6, 6, 1, 2}));
  save(pathOf("model"), model);

  Sequential loaded;
  load(pathOf("model"), loaded);
  EXPECT_EQ(loaded.prettyString(), model.prettyString());
  EXPECT_TRUE(allParamsClose(model, loaded, 1e-9));
  EXPECT_EQ(valuesOf(loaded(x).tensor()), valuesOf(model(x).tensor()));
  EXPECT_FALSE(loaded.param(0).isCalcGrad());
  loaded.train();
  EXPECT_TRUE(loaded.param(0).isCalcGrad());

  // A container and its children still share after loading, and share nothing with the original.
  loaded.param(0).tensor() += 1;
  EXPECT_EQ(valuesOf(loaded.module(1)->param(0).tensor()), valuesOf(loaded.param(0).tensor()));
  EXPECT_FALSE(allParamsClose(model, loaded));
  // It goes on training.
  sum(loaded(x), {}).backward();
  EXPECT_TRUE(loaded.module(5)->param(0).isGradAvailable());
}

TEST(Serialization, PointersKnowTheirClass) {
  const ModulePtr model = std::make_shared<Sequential>(smallModel());
  const ModulePtr loss = std::make_shared<CategoricalCrossEntropy>(ReduceMode::SUM, 2);
  save(pathOf("pointers"), model, loss, std::string("note"));
  ModulePtr loadedModel, loadedLoss;
  std::string note;
  load(pathOf("pointers"), loadedModel, loadedLoss, note);
  ASSERT_TRUE(std::dynamic_pointer_cast<Sequential>(loadedModel));
  ASSERT_TRUE(std::dynamic_pointer_cast<CategoricalCrossEntropy>(loadedLoss));
  EXPECT_EQ(note, "note");
  EXPECT_TRUE(allParamsClose(*model, *loadedModel, 1e-9));
  const Variable x = input(Tensor::fromVector(Shape({3, 2}), std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Variable y = input(Tensor::fromVector(std::vector<int>{1, 2}));
  EXPECT_EQ(loadedLoss->forward({x, y})[0].scalar<float>(), -2);  // the 2 is ignored
}

TEST(Serialization, MembersOfSomeVersions) {
  OldRecord old;
  old.rate = 5;
  old.gone = 2.5;
  std::stringstream stream;
  save(stream, old, 11);
  NewRecord record;
  int after = 0;
  load(stream, record, after);
  EXPECT_EQ(record.rate, 5);
  EXPECT_EQ(record.gone, 2.5);
  EXPECT_EQ(record.name, "unnamed");
  EXPECT_EQ(record.halves, 7);
  EXPECT_EQ(after, 11);

  record = {6, 3.5, "named", 9};
  std::stringstream newer;
  save(newer, record, 12);
  NewRecord copy;
  load(newer, copy, after);
  EXPECT_EQ(copy.rate, 6);
  EXPECT_EQ(copy.gone, -1);  // not in archives of version 1
  EXPECT_EQ(copy.name, "named");
  EXPECT_EQ(copy.halves, 9);
  EXPECT_EQ(after, 12);

  // As an int, a rate that is too large for one is cut off: it is an int that the archive holds.
  record.rate = (int64_t{1} << 32) + 3;
  std::stringstream cut;
  save(cut, record);
  load(cut, copy);
  EXPECT_EQ(copy.rate, 3);
}

TEST(Serialization, TensorsOfEveryType) {
  for (dtype type : {dtype::f16, dtype::f32, dtype::f64, dtype::b8, dtype::s16, dtype::s32,
                     dtype::s64, dtype::u8, dtype::u16, dtype::u32, dtype::u64}) {
    SCOPED_TRACE(dtypeToString(type));
    const Tensor tensor =
        Tensor::fromVector(Shape({2, 3}), std::vector<float>{0, 1, 2, 3, 4, 5}).astype(type);
    std::stringstream stream;
    save(stream, tensor);
    Tensor loaded;
    load(stream, loaded);
    EXPECT_EQ(loaded.type(), type);
    EXPECT_EQ(loaded.shape(), Shape({2, 3}));
    EXPECT_EQ(valuesOf(loaded.astype(dtype::f32)), valuesOf(tensor.astype(dtype::f32)));
  }
  for (const Tensor& tensor : {Tensor(), full(Shape(), 7.0), full(Shape({0, 3}), 1.0)}) {
    std::stringstream stream;
    save(stream, tensor);
    Tensor loaded = full(Shape({5}), 1.0);
    load(stream, loaded);
    EXPECT_EQ(loaded.shape(), tensor.shape());
  }
}

TEST(Serialization, VariablesThatShareAreWrittenOnce) {
  const Variable x = param(rand({100}));
  std::stringstream once, twice;
  save(once, x);
  save(twice, x, x);
  EXPECT_LT(twice.str().size(), once.str().size() + 100);
  Variable first, second;
  load(twice, first, second);
  first.tensor() += 1;
  EXPECT_EQ(valuesOf(first.tensor()), valuesOf(second.tensor()));
  EXPECT_TRUE(second.isCalcGrad());
  // No history, no gradient.
  Variable y = x * 2.0;
  y.backward(true);
  std::stringstream computed;
  save(computed, y);
  load(computed, first);
  EXPECT_FALSE(first.isGradAvailable());
}

TEST(Serialization, ParametersOfTwoModulesStayShared) {
  const Variable w = param(rand({2, 2}));
  Sequential model;
  model.add(Linear(w));
  model.add(Linear(w));
  std::stringstream stream;
  save(stream, model);
  Sequential loaded;
  load(stream, loaded);
  const auto areShared = [](const Sequential& each) {
    each.module(0)->param(0).tensor() += 1;
    return valuesOf(each.module(0)->param(0).tensor()) ==
           valuesOf(each.module(1)->param(0).tensor());
  };
  EXPECT_TRUE(areShared(loaded));
  EXPECT_TRUE(areShared(model));
  EXPECT_FALSE(areShared(Sequential(model)));  // a copy has copies
}

TEST(Serialization, SavingLeavesTheModelAlone) {
  Sequential model = smallModel();
  const std::vector<float> before = valuesOf(model.param(0).tensor());
  save(pathOf("untouched"), model);
  EXPECT_EQ(valuesOf(model.param(0).tensor()), before);
  EXPECT_TRUE(model.param(0).isCalcGrad());
}

// ---- Files that are not as they should be ----

std::string wordsOfLoading(const std::string& path) {
  Sequential model;
  return errorOf<std::runtime_error>([&] { load(path, model); });
}

TEST(Serialization, FilesAreReplacedWholeOrNotAtAll) {
  const std::string folder = pathOf("whole");
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/model";
  save(path, smallModel());
  const auto size = std::filesystem::file_size(path);
  Sequential unsavable;
  unsavable.add(Linear(2, 2));
  unsavable.add(Transform([](const Variable& v) { return v; }));
  const std::string words = errorOf<std::runtime_error>([&] { save(path, unsavable); });
  EXPECT_NE(words.find(path + ": cannot be saved: a Transform"), std::string::npos) << words;
  EXPECT_EQ(std::filesystem::file_size(path), size);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
  }
  EXPECT_EQ(files, 1);
  Sequential loaded;
  load(path, loaded);
  EXPECT_EQ(loaded.modules().size(), 13u);
}

std::string bytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

TEST(Serialization, TruncatedFilesAreNamed) {
  const std::string path = pathOf("truncated");
  save(path, smallModel());
  const std::string bytes = bytesOf(path);
  for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97) {
    SCOPED_TRACE(size);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
    EXPECT_EQ(wordsOfLoading(path),
              size < 32 ? path + ": is no file that fl::save has written"
                        : path + ": ends too early: " + std::to_string(size - 32) + " of " +
                              std::to_string(bytes.size() - 32) + " bytes are there");
  }
}

TEST(Serialization, DamagedFilesAreNamed) {
  const std::string path = pathOf("damaged");
  save(path, smallModel());
  const std::string bytes = bytesOf(path);
  for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 199) {
    SCOPED_TRACE(at);
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(~damaged[at]);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(wordsOfLoading(path).find(path), 0u);
  }
  std::ofstream(path, std::ios::binary) << bytes << "more";
  EXPECT_NE(wordsOfLoading(path).find("is damaged"), std::string::npos);
}

TEST(Serialization, OtherFilesAreRefused) {
  const std::string path = pathOf("foreign");
  std::ofstream(path) << "#include <vector>\nint main() {}\n";
  EXPECT_EQ(wordsOfLoading(path), path + ": is no file that fl::save has written");
  std::ofstream(path).close();
  EXPECT_EQ(wordsOfLoading(path), path + ": is no file that fl::save has written");
  EXPECT_NE(wordsOfLoading(pathOf("missing")).find("missing: cannot be opened: No such file"),
            std::string::npos);
  EXPECT_NE(errorOf<std::runtime_error>([&] {
              save(pathOf("no/such/folder/model"), smallModel());
            }).find("cannot be written"),
            std::string::npos);
}

TEST(Serialization, WhatIsNoRegularFileIsLeftAlone) {
  const std::string path = pathOf("fifo");
  std::filesystem::remove(path);  // of an earlier run
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(wordsOfLoading(path), path + ": cannot be opened: it is no regular file");
  EXPECT_EQ(errorOf<std::runtime_error>([&] { save(path, smallModel()); }),
            path + ": cannot be written: it is no regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_EQ(wordsOfLoading(::testing::TempDir()),
            ::testing::TempDir() + ": is no file that fl::save has written");
}

TEST(Serialization, LoadingSomethingElseIsSaidSo) {
  const std::string path = pathOf("else");
  // Read as a model, these are sizes that no vector can have, or identities that nothing has, and
  // the last ends early.
  for (const uint64_t number : {~uint64_t{0}, uint64_t{1} << 33, uint64_t{0}}) {
    save(path, std::vector<uint64_t>(number ? 100 : 1, number));
    const std::string words = wordsOfLoading(path);
    EXPECT_EQ(words.find(path + ": cannot be loaded: "), 0u) << words;
    EXPECT_EQ(words.find("std::"), std::string::npos) << words;
  }
}

// ---- Archives, which have no hash that is checked before ----

std::string archiveOfAModel() {
  Sequential model;
  model.add(Linear(3, 2));
  model.add(Tanh());
  model.add(Dropout(0.25));
  std::stringstream stream;
  save(stream, model);
  return stream.str();
}

TEST(Serialization, TruncatedArchivesEndTooEarly) {
  const std::string bytes = archiveOfAModel();
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    std::istringstream stream(bytes.substr(0, size));
    Sequential model;
    const std::string words = errorOf<cereal::Exception>([&] { load(stream, model); });
    EXPECT_TRUE(words == "it ends too early" || words.find(" bytes are left") != std::string::npos)
        << words;
  }
}

TEST(Serialization, AByteThatIsNoBoolIsRefused) {
  for (const auto& [byte, expected] : {std::pair('\0', false), std::pair('\1', true)}) {
    std::istringstream stream(std::string(1, byte));
    bool value = !expected;
    load(stream, value);
    EXPECT_EQ(value, expected);
  }
  std::istringstream stream("\3");
  bool value = false;
  try {
    load(stream, value);
    ADD_FAILURE() << "it was read";
  } catch (const cereal::Exception& error) {
    EXPECT_STREQ(error.what(), "it holds something else than what is loaded from it: 3 as a bool");
  }
}

TEST(Serialization, PointersShareObjectsOfTheirType) {
  const auto five = std::make_shared<int>(5);
  std::stringstream stream;
  save(stream, five, five);
  std::istringstream again(stream.str());
  std::shared_ptr<int> first, second;
  load(again, first, second);
  EXPECT_EQ(*first, 5);
  EXPECT_EQ(first, second);
  std::istringstream wrong(stream.str());
  std::shared_ptr<float> other;
  EXPECT_EQ(errorOf<cereal::Exception>([&] { load(wrong, first, other); }),
            "it holds something else than what is loaded from it: a pointer to object 1");
}

// A damaged size is a megabyte, gigabytes, or more than there is. None is believed.
TEST(Serialization, DamagedArchivesTakeNoMemory) {
  const std::string bytes = archiveOfAModel();
  const auto peakBytes = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss << 10;
  };
  const long before = peakBytes();
  int refused = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    std::istringstream stream(damaged);
    Sequential model;
    try {
      load(stream, model);  // where numbers are damaged, nothing is wrong
    } catch (const std::bad_alloc&) {
      ADD_FAILURE() << "a size was believed";
    } catch (const std::exception&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(peakBytes() - before, 1l << 30);
}

}  // namespace
}  // namespace fl::test
