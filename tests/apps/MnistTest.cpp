#include <cmath>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "apps/mnist/Mnist.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ErrorOf.h"
#include "tests/apps/IdxFiles.h"

namespace fl::app {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::StartsWith;

TEST(LoadDataset, ScalesPixelsAndKeepsTheirOrder) {
  const fs::path folder = makeFolder("load");
  writeDataset(folder, 12, 4, 5);
  const auto [x, y] = loadDataset(folder);
  EXPECT_EQ(x.shape(), Shape({4, 5, 12}));
  EXPECT_EQ(x.type(), dtype::f32);
  const std::vector<float> pixels = x.toHostVector<float>();
  for (size_t i = 0; i < pixels.size(); ++i) {
    EXPECT_NEAR(pixels[i], i / 255. - 0.5, 1e-7) << i;
  }
  EXPECT_EQ(y.shape(), Shape({12}));
  EXPECT_EQ(y.type(), dtype::s32);
  EXPECT_THAT(y.toHostVector<int>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1));
}

TEST(LoadDataset, ReadsTheBundledDigits) {
  const auto [x, y] = loadDataset(digitsDirectory());
  EXPECT_EQ(x.shape(), Shape({8, 8, 1437}));
  // As the source counts them.
  EXPECT_EQ(sum(y).asScalar<int>(), 6449);
  const auto [testX, testY] = loadDataset(digitsDirectory(), /*test=*/true);
  EXPECT_EQ(testX.shape(), Shape({8, 8, 360}));
  EXPECT_EQ(testY.shape(), Shape({360}));
}

TEST(LoadDataset, NamesTheFileThatIsMissing) {
  const fs::path folder = makeFolder("missing");
  writeDataset(folder, 2, 4, 4);
  fs::remove(folder / "t10k-labels-idx1-ubyte");
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadDataset(folder, /*test=*/true); }),
            (folder / "t10k-labels-idx1-ubyte").string() +
                ": cannot be opened: No such file or directory");
}

TEST(LoadDataset, RefusesLabelsAndImagesThatDifferInNumber) {
  const fs::path folder = makeFolder("differ");
  writeDataset(folder, 3, 4, 4);
  const fs::path labels = folder / "train-labels-idx1-ubyte";
  writeFile(labels, idxBytes({0x801, 2}, {0, 1}));
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadDataset(folder); }),
            labels.string() + ": 2 labels, but " + (folder / "train-images-idx3-ubyte").string() +
                " has 3 images");
}

TEST(LoadDataset, RefusesALabelAboveNine) {
  const fs::path folder = makeFolder("label");
  writeDataset(folder, 3, 4, 4);
  const fs::path labels = folder / "train-labels-idx1-ubyte";
  writeFile(labels, idxBytes({0x801, 3}, {9, 0, 10}));
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadDataset(folder); }),
            labels.string() + ": label 10 at index 2 is not in 0..9");
}

TEST(Model, FollowsTheImageSize) {
  // 9x6 pools to 4x3 and 2x1.
  Sequential model = makeModel(9, 6);
  std::vector<Shape> shapes;
  for (const Variable& parameter : model.params()) {
    shapes.push_back(parameter.shape());
  }
  EXPECT_THAT(shapes, ElementsAre(Shape({5, 5, 1, 32}), Shape({1, 1, 32, 1}), Shape({5, 5, 32, 64}),
                                  Shape({1, 1, 64, 1}), Shape({1024, 128}), Shape({1024}),
                                  Shape({10, 1024}), Shape({10})));
}

TEST(Model, GivesLogProbabilities) {
  setSeed(1);
  Sequential model = makeModel(9, 6);
  model.eval();
  const Tensor output = model(noGrad(rand({9, 6, 3}))).tensor();
  ASSERT_EQ(output.shape(), Shape({10, 3}));
  const std::vector<float> values = output.toHostVector<float>();
  for (int image = 0; image < 3; ++image) {
    double total = 0;
    for (int label = 0; label < 10; ++label) {
      total += std::exp(values[image * 10 + label]);
    }
    EXPECT_NEAR(total, 1, 1e-5);
  }
}

TEST(Model, RefusesImagesThatPoolingWouldEmpty) {
  EXPECT_EQ(test::errorOf<std::exception>([] { makeModel(8, 3); }),
            "images of 8x3: the model needs at least 4x4");
}

TEST(SavedModel, HoldsTheSameParameters) {
  const fs::path folder = makeFolder("save");
  setSeed(1);
  const Sequential model = makeModel(8, 4);
  saveModel(model, 8, 4, folder / "model");
  setSeed(2);
  const Sequential loaded = loadModel(folder / "model", 8, 4);
  ASSERT_EQ(loaded.params().size(), model.params().size());
  for (size_t i = 0; i < model.params().size(); ++i) {
    EXPECT_EQ(loaded.params()[i].tensor().toHostVector<float>(),
              model.params()[i].tensor().toHostVector<float>())
        << i;
    EXPECT_TRUE(loaded.params()[i].isCalcGrad());
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(SavedModel, IsRefusedUnlessItIsWholeAndFits) {
  const std::string file = makeFolder("model") / "model";
  saveModel(makeModel(8, 8), 8, 8, file);
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadModel(file, 8, 8); }), "");
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadModel(file, 28, 8); }),
            file + ": a model for images of 8x8, but the data's are 28x8");
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_THAT(test::errorOf<std::exception>([&] { loadModel(file, 8, 8); }),
              StartsWith(file + ": ends too early"));
  writeFile(file, "a text that is no model");
  EXPECT_THAT(test::errorOf<std::exception>([&] { loadModel(file, 8, 8); }),
              StartsWith(file + ": is no file that fl::save has written"));
  // Whole files of fl::save, of other programs; the sizes in the first might be a model's.
  save(file, Dim{8}, Dim{8}, makeModel(8, 8));
  const std::string other = file + ": holds something else than a model of this program";
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadModel(file, 8, 8); }), other);
  save(file, makeModel(8, 8));
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadModel(file, 8, 8); }), other);
  save(file, 1);
  EXPECT_THAT(test::errorOf<std::exception>([&] { loadModel(file, 8, 8); }),
              StartsWith(file + ": cannot be loaded: "));
  fs::remove(file);
  EXPECT_EQ(test::errorOf<std::exception>([&] { loadModel(file, 8, 8); }),
            file + ": cannot be opened: No such file or directory");
}

TEST(SavedModel, NamesTheFileThatItCannotWrite) {
  const std::string file = makeFolder("unwritable") / "no folder" / "model";
  EXPECT_EQ(test::errorOf<std::exception>([&] { saveModel(makeModel(8, 8), 8, 8, file); }),
            file + ": cannot be written: No such file or directory");
}

}  // namespace
}  // namespace fl::app
