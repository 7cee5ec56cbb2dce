#include "fl/runtime/Failure.h"

#include <exception>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/Hash.h"
#include "fl/base/Log.h"
#include "fl/ir/Slot.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Store.h"

namespace fl::runtime {
namespace {

namespace fs = std::filesystem;

// The file's path; the reason in its place if it cannot be written.
std::string save(const std::string& text) {
  try {
    const fs::path kept = cacheFolder();
    const fs::path root = kept.empty() ? fs::temp_directory_path() / "fl" : kept;
    const fs::path folder = root / kFailures;
    makeRoom(root, cacheLimit());
    fs::create_directories(folder);
    const uint64_t hash = hashBytes(text.data(), text.size()).low;
    const fs::path file = folder / absl::StrCat(absl::Hex(hash, absl::kZeroPad16), ".flir");
    AtomicFile::write(file, text);
    return file.string();
  } catch (const std::exception& error) {
    return std::string("(not saved: ") + error.what() + ")";
  }
}

}  // namespace

std::string caughtError() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "what was thrown is no std::exception";
  }
}

void reportFailure(const std::string& consequence, const std::string& reason,
                   const std::string& text, const CallSite& site) {
  counters().fallbacks++;
  static auto& told = *new CallSites();
  if (!told.insert(site)) return;
  const std::string where = site.toString();
  const bool isPlain = ir::slotChanges() == 0;  // `fl opt` has no extension of the program's
  logWarning(consequence + (where.empty() ? "" : ", at " + where) + ": " + reason +
             (isPlain ? "; to repeat it: fl opt "
                      : "; what was compiled, with extensions of the compiler: ") +
             save(text));
}

}  // namespace fl::runtime
