// SPDX-License-Identifier: Apache-2.0
// Loaded into User Mode Linux before its other libraries. Debian's 6.1 keeps 2696 bytes of a process's
// registers; a processor with AMX has 11008, and the host refuses to set only a part of them. So the part
// that the guest knows is put over what the process has, and all of it is set.
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>

namespace {

/// Not on the stack, which is small there; the guest has one processor, so calls do not overlap.
std::array<char, 65536> registers;  // NOLINT(cert-err58-cpp)

long set_registers(long process, const iovec& part) {
  iovec whole{.iov_base = registers.data(), .iov_len = registers.size()};
  if (::syscall(SYS_ptrace, PTRACE_GETREGSET, process, NT_X86_XSTATE, &whole) != 0) return -1;
  if (part.iov_len < whole.iov_len) {
    std::memcpy(registers.data(), part.iov_base, part.iov_len);
  } else {
    whole = part;
  }
  return ::syscall(SYS_ptrace, PTRACE_SETREGSET, process, NT_X86_XSTATE, &whole);
}

}  // namespace

// The C library declares it like this; clang warns of the enumeration in front of the dots.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wvarargs"
#endif
extern "C" long ptrace(__ptrace_request request, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, request);
  const long process = va_arg(arguments, long);
  const long address = va_arg(arguments, long);
  void* const data = va_arg(arguments, void*);
  va_end(arguments);
  if (request == PTRACE_SETREGSET && address == NT_X86_XSTATE) {
    return set_registers(process, *static_cast<const iovec*>(data));
  }
  if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER) {
    return ::syscall(SYS_ptrace, request, process, address, data);
  }
  long word = 0;
  if (::syscall(SYS_ptrace, request, process, address, &word) != 0) return -1;
  errno = 0;
  return word;
}
