// What a call tells the user whose argument is wrong.
#pragma once

#include <stdexcept>
#include <string>

namespace fl::test {

// The words of the Error that `call` throws; "" if it throws nothing.
template <typename Error = std::invalid_argument, typename Call>
std::string errorOf(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace fl::test
