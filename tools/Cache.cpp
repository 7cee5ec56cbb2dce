#include "tools/Cache.h"

#include <filesystem>
#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "fl/base/Error.h"
#include "fl/runtime/Store.h"
#include "tools/Arguments.h"

ABSL_FLAG(bool, clear, false, "remove all of it");

namespace fl::tools {
namespace {

namespace fs = std::filesystem;

struct Use {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

Use useOf(const fs::path& kind) {
  Use use;
  std::error_code error;
  for (fs::directory_iterator file(kind, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;  // another process may have removed it
    const uint64_t bytes = file->file_size(gone);
    if (!gone) use = {use.entries + 1, use.bytes + bytes};
  }
  return use;
}

}  // namespace

int runCache(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl cache [--clear]\n\nPrints what is kept on disk between runs, by kind, in the folder "
      "that FL_CACHE_DIR names.",
      __FILE__, {}, argc, argv);
  FL_USER_CHECK(arguments.size() == 1, "cache: expected no file");
  const fs::path folder = runtime::cacheFolder();
  FL_USER_CHECK(!folder.empty(), "cache: there is no folder: set FL_CACHE_DIR");
  if (absl::GetFlag(FLAGS_clear)) runtime::makeRoom(folder, 0);
  Use all;
  for (const char* kind : runtime::kKinds) {
    const Use use = useOf(folder / kind);
    all = {all.entries + use.entries, all.bytes + use.bytes};
    std::cout << absl::StreamFormat("%-10s%10d entries%14d bytes\n", kind, use.entries, use.bytes);
  }
  std::cout << absl::StreamFormat("%-10s%10d entries%14d bytes of %d in %s\n", "all", all.entries,
                                  all.bytes, runtime::cacheLimit(), folder.string());
  return 0;
}

}  // namespace fl::tools
