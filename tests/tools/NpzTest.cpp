// .npy and .npz files: NumPy's own (tests/reference/arrays.npz), ours, and bad ones.
#include <gtest/gtest.h>
#include <zip.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "fl/base/Error.h"
#include "tests/ErrorOf.h"
#include "tools/npy/Npz.h"

namespace fl {
namespace {

using test::errorOf;

std::string temporary(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/" + name;
}

std::string fileWith(const std::string& content) {
  const std::string path = temporary("case.npy");
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string contentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A .npy file of version 1.0.
std::string npy(const std::string& header, const std::string& elements) {
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header +
         elements;
}

std::string errorOfContent(const std::string& content) {
  const std::string path = fileWith(content);
  const std::string error = errorOf([&] { readNpy(path); });
  EXPECT_EQ(error.find(path + ": "), 0u) << error;
  return error.substr(std::min(error.size(), path.size() + 2));
}

// Element (i, j, k) of `array` as a number.
double at(const NpyArray& array, Dim i, Dim j, Dim k) {
  const Dim place = i + array.shape[0] * (j + array.shape[1] * k);
  return dispatchType(array.type, [&](auto tag) {
    typename decltype(tag)::type element;
    std::memcpy(&element, &array.bytes[place * sizeof(element)], sizeof(element));
    return static_cast<double>(static_cast<float>(element));
  });
}

TEST(Npz, EveryDtypeInBothOrders) {
  const auto arrays = readNpz("tests/reference/arrays.npz");
  for (int i = 0; i < kDtypeCount; ++i) {
    const dtype type = static_cast<dtype>(i);
    if (type == dtype::bf16) {
      continue;
    }
    for (const char* order : {" C", " F"}) {
      const std::string name = dtypeToString(type) + order;
      ASSERT_TRUE(arrays.contains(name)) << name;
      const NpyArray& array = arrays.at(name);
      EXPECT_EQ(array.type, type) << name;
      ASSERT_EQ(array.shape, Shape({2, 3, 4})) << name;
      for (Dim place = 0; place < 24; ++place) {
        const Dim i = place % 2, j = place / 2 % 3, k = place / 6;
        const Dim value = 100 * i + 10 * j + k;
        EXPECT_EQ(at(array, i, j, k), type == dtype::b8 ? value % 3 == 0 : value) << name;
      }
    }
  }
}

TEST(Npz, ScalarsAndNothing) {
  const auto arrays = readNpz("tests/reference/arrays.npz");
  EXPECT_EQ(arrays.at("scalar").shape, Shape({}));
  EXPECT_EQ(arrays.at("scalar").bytes.size(), 8u);
  EXPECT_EQ(arrays.at("empty").shape, Shape({2, 0, 3}));
  EXPECT_TRUE(arrays.at("empty").bytes.empty());
  EXPECT_EQ(arrays.size(), 24u);
}

TEST(Npy, RoundTrip) {
  const std::string path = temporary("round.npy");
  for (const auto& [name, array] : readNpz("tests/reference/arrays.npz")) {
    writeNpy(path, array);
    EXPECT_EQ(readNpy(path), array) << name;
  }
  writeNpy(path, {dtype::s16, Shape({2}), {1, 0, 2, 0}});
  EXPECT_EQ(readNpy(path), (NpyArray{dtype::s16, Shape({2}), {1, 0, 2, 0}}));
}

TEST(Npz, RoundTrip) {
  const std::string path = temporary("round.npz");
  const auto arrays = readNpz("tests/reference/arrays.npz");
  writeNpz(path, arrays);
  EXPECT_EQ(readNpz(path), arrays);
  const NpyArray one{dtype::u8, Shape({1}), {7}};
  writeNpz(path, {{"one", one}});  // replaces it
  EXPECT_EQ(readNpz(path), (std::map<std::string, NpyArray>{{"one", one}}));
  EXPECT_EQ(errorOf([] { writeNpz("x.npz", {{"a", {dtype::bf16, Shape({1}), {0, 0}}}}); }),
            "x.npz: a: NumPy has no bf16");
  EXPECT_EQ(errorOf([&] { writeNpz("/nowhere/x.npz", {{"one", one}}); }).find("/nowhere/x.npz: "),
            0u);
}

// What NumPy writes for numpy.asfortranarray([[1, 2], [3, 4]], 'u1'), to the byte.
TEST(Npy, TheBytesOfAFile) {
  const std::string path = temporary("bytes.npy");
  writeNpy(path, {dtype::u8, Shape({2, 2}), {1, 3, 2, 4}});
  std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }";
  header.resize(117, ' ');
  EXPECT_EQ(contentOf(path), npy(header + "\n", "\1\3\2\4"));
}

TEST(Npy, HeadersInOtherWords) {
  const NpyArray array = readNpy(fileWith(
      npy("{'shape':(2,),'descr':'<u2','fortran_order':True}", std::string("\1\0\2\0", 4))));
  EXPECT_EQ(array, (NpyArray{dtype::u16, Shape({2}), {1, 0, 2, 0}}));
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }";
  std::string second = npy(header, "\7").insert(10, 2, '\0');
  second[6] = 2;
  EXPECT_EQ(readNpy(fileWith(second)), (NpyArray{dtype::u8, Shape({1}), {7}}));
}

TEST(Npy, EveryByteButZeroIsTrue) {
  const NpyArray array = readNpy(fileWith(npy(
      "{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", std::string("\0\1\2\377", 4))));
  EXPECT_EQ(array, (NpyArray{dtype::b8, Shape({4}), {0, 1, 1, 1}}));
}

TEST(Npy, BadFiles) {
  const std::string good =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678");
  EXPECT_EQ(errorOfContent("PNG"), "is no .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(errorOfContent(good.substr(0, 9)), "is cut off in its header");
  EXPECT_EQ(errorOfContent(good.substr(0, 30)), "is cut off in its header");
  EXPECT_EQ(errorOfContent(good.substr(0, good.size() - 1)),
            "has 7 bytes of elements, but f32[2] has 2 elements of 4");
  EXPECT_EQ(errorOfContent(good + "more"),
            "has 12 bytes of elements, but f32[2] has 2 elements of 4");
  std::string version = good;
  version[6] = 4;
  EXPECT_EQ(errorOfContent(version), "version 4 of the .npy format is unknown");
  version[6] = 2;
  EXPECT_EQ(errorOfContent(version.insert(10, "\0\1", 2)),
            "its header of 16777273 bytes is too long");
  EXPECT_EQ(errorOf([] { readNpy("/nowhere/x.npy"); }), "/nowhere/x.npy: cannot be opened");
  const std::string folder = temporary("folder.npy");
  std::filesystem::create_directories(folder);
  EXPECT_EQ(errorOf([&] { readNpy(folder); }), folder + ": cannot be read: it is a directory");
}

TEST(Npy, BadHeaders) {
  const auto error = [](const std::string& header) { return errorOfContent(npy(header, "")); };
  EXPECT_EQ(error("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}"),
            "bad header: elements of '>f4' are big-endian, which is not supported");
  for (const char* type : {"<c8", "|i1", "|O", "<U3", "<f16", "", "f4", "|f4", "<b1"}) {
    EXPECT_EQ(
        error(detail::concat("{'descr': '", type, "', 'fortran_order': False, 'shape': (2,)}")),
        detail::concat("bad header: no dtype of ours is '", type, "'"));
  }
  EXPECT_EQ(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
            "bad header: records are not supported");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False}"),
            "bad header: needs 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(error("{'color': 3}"), "bad header: the key 'color' is unknown");
  EXPECT_EQ(error("{'shape': (-1,)}"), "bad header: a dimension of -1");
  EXPECT_EQ(error("{'shape': (1 2)}"),
            "bad header: 1:14: expected \",\" or \")\", not \"2\"\n{'shape': (1 2)}\n"
            "             ^");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}")
                .find("bad header: 1:35: expected \"False\", not \"1\""),
            0u);
  EXPECT_NE(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000)}")
                .find("has too many elements"),
            std::string::npos);
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000000000000,)}"),
            "has 0 bytes of elements, but f32[4000000000000000000] has 4000000000000000000 "
            "elements of 4");
}

TEST(Npz, BadFiles) {
  const std::string path = temporary("case.npz"), good = contentOf("tests/reference/arrays.npz");
  const auto error = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return errorOf([&] { readNpz(path); });
  };
  ASSERT_EQ(error(good), "");
  EXPECT_EQ(error("PNG"), path + ": is no .npz file: it is no zip archive");
  EXPECT_EQ(error(""), path + ": is no .npz file: it is no zip archive");
  for (size_t size : {size_t{4}, size_t{40}, good.size() / 2, good.size() - 20, good.size() - 1}) {
    EXPECT_EQ(error(good.substr(0, size)),
              path +
                  ": is cut off: it begins as a .npz file, but its end with the list of arrays "
                  "is missing");
  }
  EXPECT_EQ(errorOf([] { readNpz("/nowhere/x.npz"); }), "/nowhere/x.npz: No such file");
  // One bit of a member.
  std::string flipped = good;
  flipped[160] = static_cast<char>(flipped[160] ^ 16);
  EXPECT_EQ(error(flipped), path + ": b8 F.npy: CRC error");
}

// Where elements are broken, who reads them finds it.
TEST(Npz, NoElementsAreReadThatAreOfNoUse) {
  const std::string path = temporary("case.npz");
  const auto error = [&](const std::string& member, const std::string& header,
                         const NpyCheck& check) {
    const std::string content = npy(header, std::string(1000, '\7'));
    zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
    const zip_int64_t index = zip_file_add(archive, member.c_str(), source, ZIP_FL_ENC_UTF_8);
    zip_set_file_compression(archive, index, ZIP_CM_STORE, 0);
    EXPECT_EQ(zip_close(archive), 0);
    std::string broken = contentOf(path);
    broken[broken.find("\7\7\7") + 500] = '\0';
    std::ofstream(path, std::ios::binary) << broken;
    return errorOf([&] { readNpz(path, check); }).substr(path.size() + 2);
  };
  const auto refuse = [&](const std::string& name, dtype type, const Shape& shape) {
    throwUser(path, ": ", name, " is ", typeToString(type, shape));
  };
  const auto accept = [](const std::string&, dtype, const Shape&) {};
  const std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (1000,)}";
  EXPECT_EQ(error("x.npy", header, accept), "x.npy: CRC error");
  EXPECT_EQ(error("x.npy", header, refuse), "x is u8[1000]");
  EXPECT_EQ(error("x.txt", header, accept), "x.txt: is no .npy file");
  EXPECT_EQ(error("x.npy", "{'descr': '|u1', 'fortran_order': True, 'shape': (2,)}", accept),
            "x.npy: has 1000 bytes of elements, but u8[2] has 2 elements of 1");
}

TEST(Npy, BadArraysAreNotWritten) {
  EXPECT_EQ(errorOf([] { writeNpy("x.npy", {dtype::bf16, Shape({1}), {0, 0}}); }),
            "x.npy: NumPy has no bf16");
  EXPECT_EQ(errorOf([] { writeNpy("x.npy", {dtype::f32, Shape({2}), {0}}); }),
            "x.npy: 1 bytes for f32[2], which has 8");
  EXPECT_EQ(errorOf([] { writeNpy("/nowhere/x.npy", {dtype::u8, Shape({1}), {0}}); }),
            "/nowhere/x.npy: cannot be written");
}

}  // namespace
}  // namespace fl
