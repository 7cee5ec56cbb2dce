#include "tools/npy/Npz.h"

#include <zip.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>

#include "fl/base/Error.h"
#include "fl/base/Text.h"

namespace fl {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr std::string_view kMagic("\x93NUMPY", 6);

// NumPy's name of a dtype, without the byte order.
struct NpyName {
  dtype type;
  const char* name;
};
constexpr NpyName kNames[] = {
    {dtype::f16, "f2"}, {dtype::f32, "f4"}, {dtype::f64, "f8"}, {dtype::b8, "b1"},
    {dtype::s16, "i2"}, {dtype::s32, "i4"}, {dtype::s64, "i8"}, {dtype::u8, "u1"},
    {dtype::u16, "u2"}, {dtype::u32, "u4"}, {dtype::u64, "u8"},
};

struct Header {
  dtype type = dtype::f32;
  bool columnMajor = false;
  Shape shape;
};

std::string takeQuoted(Lexer& lexer) {
  std::string text;
  lexer.expect("'");
  while (!lexer.atEnd() && lexer.peek() != "'") {
    text += lexer.take();
  }
  lexer.expect("'");
  return text;
}

dtype takeNpyType(Lexer& lexer) {
  FL_USER_CHECK(lexer.peek() != "[", "records are not supported");
  const std::string text = takeQuoted(lexer);
  FL_USER_CHECK(!text.starts_with('>'), "elements of '", text,
                "' are big-endian, which is not supported");
  for (const NpyName& known : kNames) {
    const char order = getTypeSize(known.type) == 1 ? '|' : '<';
    if (text == order + std::string(known.name)) {
      return known.type;
    }
  }
  throwUser("no dtype of ours is '", text, "'");
}

Shape takeTuple(Lexer& lexer) {
  Shape shape;
  lexer.expect("(");
  while (!lexer.accept(")")) {
    const Dim size = lexer.takeInteger();
    FL_USER_CHECK(size >= 0, "a dimension of ", size);
    shape.get().push_back(size);
    if (!lexer.accept(",") && lexer.peek() != ")") {
      lexer.fail("expected \",\" or \")\"");
    }
  }
  return shape;
}

bool takeBool(Lexer& lexer) {
  if (lexer.accept("True")) {
    return true;
  }
  lexer.expect("False");
  return false;
}

// A Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
Header parseHeader(const std::string& text) {
  Lexer lexer(text.substr(0, text.find_last_not_of(" \n") + 1));
  Header header;
  bool seen[3] = {false, false, false};
  lexer.expect("{");
  while (!lexer.accept("}")) {
    const std::string key = takeQuoted(lexer);
    lexer.expect(":");
    if (key == "descr") {
      seen[0] = true;
      header.type = takeNpyType(lexer);
    } else if (key == "fortran_order") {
      seen[1] = true;
      header.columnMajor = takeBool(lexer);
    } else if (key == "shape") {
      seen[2] = true;
      header.shape = takeTuple(lexer);
    } else {
      throwUser("the key '", key, "' is unknown");
    }
    if (!lexer.accept(",") && lexer.peek() != "}") {
      lexer.fail("expected \",\" or \"}\"");
    }
  }
  FL_USER_CHECK(seen[0] && seen[1] && seen[2], "needs 'descr', 'fortran_order' and 'shape'");
  FL_USER_CHECK(lexer.atEnd(), "something stands behind the dictionary");
  return header;
}

// C order is column-major order of the reversed shape.
Bytes fromRowMajor(const Bytes& bytes, size_t elementSize, const Shape& shape) {
  const int rank = shape.ndim();
  std::vector<size_t> strides(rank);  // in elements, of the file
  size_t count = 1;
  for (int i = rank; i-- > 0;) {
    strides[i] = count;
    count *= shape[i];
  }
  Bytes result(bytes.size());
  std::vector<Dim> index(rank, 0);
  size_t from = 0;
  for (size_t to = 0; to < count; ++to) {
    std::memcpy(&result[to * elementSize], &bytes[from * elementSize], elementSize);
    for (int i = 0; i < rank; ++i) {
      from += strides[i];
      if (++index[i] < shape[i]) {
        break;
      }
      from -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
  return result;
}

// What a file has still to give.
struct Source {
  size_t left;
  std::function<Bytes(size_t)> read;  // that many bytes, or fewer if it ends before

  Bytes take(size_t count) {
    Bytes bytes = read(count);
    left -= std::min(left, bytes.size());
    return bytes;
  }
};

// No header of what we read is longer. NumPy reads none of more than 10000 bytes unless it is told.
constexpr size_t kLongestHeader = 1 << 16;

Header takeHeader(const std::string& file, Source* source) {
  Bytes bytes = source->take(10);
  FL_USER_CHECK(
      bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0,
      file, ": is no .npy file: it does not begin with \\x93NUMPY");
  FL_USER_CHECK(bytes.size() == 10, file, ": is cut off in its header");
  const int version = bytes[6];
  FL_USER_CHECK(version >= 1 && version <= 3, file, ": version ", version,
                " of the .npy format is unknown");
  size_t length = bytes[8] | bytes[9] << 8;
  if (version > 1) {
    bytes = source->take(2);
    FL_USER_CHECK(bytes.size() == 2, file, ": is cut off in its header");
    length |= size_t{bytes[0]} << 16 | size_t{bytes[1]} << 24;
  }
  FL_USER_CHECK(length <= kLongestHeader, file, ": its header of ", length, " bytes is too long");
  bytes = source->take(length);
  FL_USER_CHECK(bytes.size() == length, file, ": is cut off in its header");
  try {
    Header header = parseHeader(std::string(bytes.begin(), bytes.end()));
    header.shape.elements();  // throws if they cannot be counted
    return header;
  } catch (const std::exception& error) {
    throwUser(file, ": bad header: ", error.what());
  }
}

// `file` is how errors name it; check(type, shape) may throw before elements are read.
template <typename Check>
NpyArray takeNpy(const std::string& file, Source* source, Check&& check) {
  const Header header = takeHeader(file, source);
  check(header.type, header.shape);
  const size_t elementSize = getTypeSize(header.type), data = source->left;
  const size_t elements = header.shape.elements();
  FL_USER_CHECK(data % elementSize == 0 && data / elementSize == elements, file, ": has ", data,
                " bytes of elements, but ", typeToString(header.type, header.shape), " has ",
                elements, " elements of ", elementSize);
  Bytes body = source->take(data);
  FL_USER_CHECK(body.size() == data, file, ": is cut off in its elements");
  if (header.type == dtype::b8) {
    for (uint8_t& element : body) element = element != 0;
  }
  return {header.type, header.shape,
          header.columnMajor ? std::move(body) : fromRowMajor(body, elementSize, header.shape)};
}

struct ZipCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

template <typename Check>
NpyArray readMember(zip_t* archive, zip_uint64_t index, const std::string& file, Check&& check) {
  const std::unique_ptr<zip_file_t, ZipCloser> member(zip_fopen_index(archive, index, 0));
  FL_USER_CHECK(member, file, ": ", zip_strerror(archive));
  zip_stat_t facts;
  FL_USER_CHECK(zip_stat_index(archive, index, 0, &facts) == 0 && (facts.valid & ZIP_STAT_SIZE),
                file, ": its size is not known");
  const auto read = [&](size_t most) {
    Bytes bytes;  // grows with what there is, whatever the archive says of it
    uint8_t chunk[1 << 16];
    while (bytes.size() < most) {
      const zip_int64_t count =
          zip_fread(member.get(), chunk, std::min(most - bytes.size(), sizeof(chunk)));
      FL_USER_CHECK(count >= 0, file, ": ", zip_file_strerror(member.get()));
      if (count == 0) break;
      bytes.insert(bytes.end(), chunk, chunk + count);
    }
    return bytes;
  };
  Source source{facts.size, read};
  NpyArray array = takeNpy(file, &source, check);
  // At its end, libzip compares the checksum.
  FL_USER_CHECK(read(1).empty(), file, ": is longer than the archive says");
  return array;
}

std::string headerText(const NpyArray& array) {
  std::string text;
  for (const NpyName& known : kNames) {
    if (known.type == array.type) {
      text = detail::concat("{'descr': '", getTypeSize(array.type) == 1 ? "|" : "<", known.name,
                            "', 'fortran_order': ", array.shape.ndim() > 1 ? "True" : "False",
                            ", 'shape': (");
    }
  }
  for (Dim size : array.shape.get()) {
    text += std::to_string(size) + (array.shape.ndim() == 1 ? "," : ", ");
  }
  if (array.shape.ndim() > 1) {
    text.resize(text.size() - 2);
  }
  return text + "), }";
}

// The bytes of a .npy file; `file` is how errors name it.
Bytes contentOf(const std::string& file, const NpyArray& array) {
  FL_USER_CHECK(array.type != dtype::bf16, file, ": NumPy has no bf16");
  const size_t needed = array.shape.elements() * getTypeSize(array.type);
  FL_USER_CHECK(array.bytes.size() == needed, file, ": ", array.bytes.size(), " bytes for ",
                typeToString(array.type, array.shape), ", which has ", needed);
  std::string header = headerText(array);
  // The elements begin at a multiple of 64 bytes, after a line's end.
  const size_t prefix = kMagic.size() + 4;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix, ' ');
  header.back() = '\n';
  Bytes bytes(kMagic.begin(), kMagic.end());
  bytes.push_back(1);  // the version, 1.0
  bytes.push_back(0);
  bytes.push_back(static_cast<uint8_t>(header.size() & 255));
  bytes.push_back(static_cast<uint8_t>(header.size() >> 8));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), array.bytes.begin(), array.bytes.end());
  return bytes;
}

// Why an archive cannot be opened. Its list of members is its end, without which libzip takes it
// for something else.
std::string reasonOf(const std::string& path, int zipError) {
  char begin[4] = {};
  std::ifstream(path, std::ios::binary).read(begin, sizeof(begin));
  if (zipError == ZIP_ER_NOZIP) {
    return std::string_view(begin, 4) == std::string_view("PK\3\4")
               ? "is cut off: it begins as a .npz file, but its end with the list of arrays is "
                 "missing"
               : "is no .npz file: it is no zip archive";
  }
  zip_error_t error;
  zip_error_init_with_code(&error, zipError);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  return reason;
}

}  // namespace

NpyArray readNpy(const std::string& path) {
  std::error_code error;
  FL_USER_CHECK(!std::filesystem::is_directory(path, error), path,
                ": cannot be read: it is a directory");
  std::ifstream in(path, std::ios::binary);
  FL_USER_CHECK(in, path, ": cannot be opened");
  const Bytes bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  FL_USER_CHECK(!in.bad(), path, ": cannot be read");
  auto next = bytes.begin();
  Source source{bytes.size(), [&](size_t most) {
                  const auto begin = next;
                  next += std::min<ptrdiff_t>(most, bytes.end() - begin);
                  return Bytes(begin, next);
                }};
  return takeNpy(path, &source, [](dtype, const Shape&) {});
}

std::map<std::string, NpyArray> readNpz(const std::string& path) {
  return readNpz(path, [](const std::string&, dtype, const Shape&) {});
}

std::map<std::string, NpyArray> readNpz(const std::string& path, const NpyCheck& check) {
  int code = 0;
  const std::unique_ptr<zip_t, ZipCloser> archive(
      zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  FL_USER_CHECK(archive, path, ": ", reasonOf(path, code));
  std::map<std::string, NpyArray> arrays;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* member = zip_get_name(archive.get(), i, 0);
    FL_USER_CHECK(member, path, ": ", zip_strerror(archive.get()));
    const std::string file = path + ": " + member;
    FL_USER_CHECK(file.ends_with(".npy"), file, ": is no .npy file");
    const std::string name(member, std::strlen(member) - 4);
    arrays[name] = readMember(archive.get(), i, file,
                              [&](dtype type, const Shape& shape) { check(name, type, shape); });
  }
  return arrays;
}

void writeNpy(const std::string& path, const NpyArray& array) {
  const Bytes bytes = contentOf(path, array);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  FL_USER_CHECK(out.flush(), path, ": cannot be written");
}

void writeNpz(const std::string& path, const std::map<std::string, NpyArray>& arrays) {
  std::vector<Bytes> contents;  // libzip reads them when it closes the archive
  for (const auto& [name, array] : arrays) {
    contents.push_back(contentOf(path + ": " + name, array));
  }
  int code = 0;
  std::unique_ptr<zip_t, ZipCloser> archive(
      zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  FL_USER_CHECK(archive, path, ": ", reasonOf(path, code));
  size_t next = 0;
  for (const auto& [name, array] : arrays) {
    const Bytes& content = contents[next++];
    zip_source_t* source = zip_source_buffer(archive.get(), content.data(), content.size(), 0);
    const zip_int64_t index =
        zip_file_add(archive.get(), (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    FL_USER_CHECK(
        index >= 0 && zip_set_file_compression(archive.get(), index, ZIP_CM_STORE, 0) == 0, path,
        ": ", zip_strerror(archive.get()));
  }
  FL_USER_CHECK(zip_close(archive.get()) == 0, path, ": ", zip_strerror(archive.get()));
  archive.release();  // closed
}

}  // namespace fl
