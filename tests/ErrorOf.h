// What a call tells the user whose argument is wrong.
#pragma once

#include <stdexcept>
#include <string>

namespace fl::test {

// The words of the std::invalid_argument that `call` throws; "" if it throws none.
template <typename Call>
std::string errorOf(Call&& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace fl::test
