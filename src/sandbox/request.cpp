#include "sandbox/request.h"

namespace llm_sandbox {

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::kTimeout:
      return "timeout";
    case Reason::kMemoryLimit:
      return "memory_limit";
    case Reason::kProcessLimit:
      return "process_limit";
    case Reason::kOutputLimit:
      return "output_limit";
    case Reason::kDiskLimit:
      return "disk_limit";
    case Reason::kCancelled:
      return "cancelled";
    case Reason::kSignal:
      return "signal";
    case Reason::kInstallFailed:
      return "install_failed";
    case Reason::kCompileFailed:
      return "compile_failed";
    case Reason::kPolicy:
      return "policy";
    case Reason::kBackendUnavailable:
      return "backend_unavailable";
    case Reason::kInvalidArgument:
      return "invalid_argument";
  }
  return "";
}

bool is_stopped(Reason reason) {
  switch (reason) {
    case Reason::kProcessLimit:
    case Reason::kDiskLimit:
    case Reason::kSignal:
    case Reason::kCompileFailed:
      return false;
    default:
      return true;
  }
}

}  // namespace llm_sandbox
