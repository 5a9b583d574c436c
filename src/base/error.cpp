#include "base/error.h"

#include <cstring>

namespace llm_sandbox {

Error errno_error(std::string_view what, int error_number) {
  char buffer[128];
  const char* text = strerror_r(error_number, buffer, sizeof buffer);
  return Error{ErrorCode::kIo, std::string(what) + ": " + text};
}

}  // namespace llm_sandbox
