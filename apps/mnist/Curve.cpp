#include "apps/mnist/Curve.h"

#include <csignal>
#include <cstdio>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fl/base/AtomicFile.h"

namespace fl::app {

namespace {

constexpr char kPanels[] = R"(
set multiplot layout 2,1
set grid
set xlabel 'epoch'
set xrange [0:*]
set ylabel 'loss'
set yrange [0:0.1<*]
plot $history using 1:2 with linespoints lw 2 pt 7 ps 0.3 title 'training', \
     $history using 1:3 with linespoints lw 2 pt 7 ps 0.3 title 'validation'
set ylabel 'accuracy, %'
set yrange [*<90:100]
set key bottom right
plot $history using 1:4 with linespoints lw 2 pt 7 ps 0.3 lt 2 title 'validation', \
     test with lines lw 2 dt 2 lt 3 title 'test, after training'
unset multiplot
)";

std::string script(const History& history, double testAccuracy, const std::string& output) {
  std::string text = "set terminal svg size 760,600 font 'sans-serif,13' background 'white'\n";
  // In gnuplot's single quotes only the quote itself is special, and is doubled.
  absl::StrAppend(&text, "set output '", absl::StrReplaceAll(output, {{"'", "''"}}), "'\n");
  absl::StrAppend(&text, "test = ", testAccuracy, "\n$history << end\n");
  for (size_t i = 0; i < history.trainLoss.size(); ++i) {
    absl::StrAppend(&text, i + 1, " ", history.trainLoss[i], " ", history.validationLoss[i], " ",
                    history.validationAccuracy[i], "\n");
  }
  return absl::StrCat(text, "end\n", kPanels);
}

// True if gnuplot ran the script without an error.
bool runGnuplot(const std::string& script) {
  // Writing to a gnuplot that ended early fails; it must not end this program.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  bool ran = false;
  if (std::FILE* pipe = popen(FL_GNUPLOT " --default-settings - >/dev/null", "w")) {
    const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
    ran = pclose(pipe) == 0 && written;
  }
  std::signal(SIGPIPE, before);
  return ran;
}

}  // namespace

void drawCurve(const History& history, double testAccuracy, const std::string& path) {
  AtomicFile file(path);
  if (!runGnuplot(script(history, testAccuracy, file.partial()))) {
    throw std::runtime_error(path + ": the curve cannot be drawn: " FL_GNUPLOT " failed");
  }
  file.commit();
}

}  // namespace fl::app
