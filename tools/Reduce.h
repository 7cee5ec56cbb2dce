// `fl reduce`: shrinks a graph, a schedule or a kernel for which a command shows a failure, as
// llvm-reduce does.
//
// The command says of a file whether the failure still shows: it runs in a shell with the file's
// path behind it, and exits with 0 if it does. Candidates come from GraphEdit.h and ScheduleEdit.h,
// and pass the verifier of their form; each that shows the failure is where the search goes on,
// until none does. The search is Zeller and Hildebrandt's delta debugging ("Simplifying and
// isolating failure-inducing input", 2002): large parts first, then halves of them. Costs a run of
// the command for each candidate, at worst quadratic in the nodes, steps or instructions that
// remain.
#pragma once

namespace fl::tools {

// argv[0] is "reduce". Prints the smallest form found, progress to standard error. Throws for bad
// arguments and text, and if the command does not exit with 0 for the input itself.
int runReduce(int argc, char** argv);

}  // namespace fl::tools
