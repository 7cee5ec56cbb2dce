// An order of steps of one's own: what reads the newest result runs next, so that results are read
// soon. It competes with those of the library; that of the lowest peak is taken.
#include <algorithm>
#include <iostream>
#include <vector>

#include "fl/fl.h"
#include "fl/research.h"

std::vector<int> newestFirst(const fl::ir::Schedule& schedule) {
  const std::vector<std::vector<int>> needs = fl::planner::dependencies(schedule);
  std::vector<int> order, ran(needs.size(), -1);  // when each step ran
  while (order.size() < needs.size()) {
    int next = -1, newest = -2;
    for (int step = 0; step < std::ssize(needs); ++step) {
      const auto hasRun = [&](int need) { return ran[need] >= 0; };
      if (hasRun(step) || !std::ranges::all_of(needs[step], hasRun)) continue;
      int read = -1;
      for (const int need : needs[step]) read = std::max(read, ran[need]);
      if (read > newest) next = step, newest = read;
    }
    ran[next] = static_cast<int>(order.size());
    order.push_back(next);
  }
  return order;
}

// Products that are all recorded before one is read.
float sums(const fl::Tensor& x) {
  std::vector<fl::Tensor> products;
  for (int i = 0; i < 4; ++i) {
    products.push_back(fl::matmul(x, x + i));
  }
  fl::Tensor total = fl::full({64, 64}, 0.0);
  for (const fl::Tensor& product : products) {
    total = total + fl::matmul(product, x);
  }
  products.clear();
  return total.toHostVector<float>()[0];
}

int main() {
  fl::Tensor x = fl::rand({64, 64}) - 0.5;
  fl::eval(x), fl::sync();
  const float before = sums(x);
  std::vector<int> order;
  fl::planner::orders().add({.name = "newest_first", .order = [&](const fl::ir::Schedule& all) {
                               return order = newestFirst(all);
                             }});
  const float after = sums(x);
  std::cout << order.size() << " steps:";
  for (const int step : order) {
    std::cout << ' ' << step;
  }
  std::cout << "\nfirst sum " << before << ", then " << after << '\n';
  return before == after && !order.empty() ? 0 : 1;
}
