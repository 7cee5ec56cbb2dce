// What frees, and the form of operator new that does not throw, for a test that replaces operator
// new by one that takes memory of malloc(): AddressSanitizer has its own of the latter. For one
// file of a program.
#pragma once

#include <cstdlib>
#include <new>

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept try {
  return operator new(bytes);
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
