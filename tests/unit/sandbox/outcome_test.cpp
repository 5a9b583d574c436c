#include "sandbox/outcome.h"

#include <doctest/doctest.h>
#include <signal.h>

using namespace llm_sandbox;
using namespace std::chrono_literals;

namespace {

struct Given {
  ExitedMessage exited;
  LimitEvents events;
  std::string stderr_bytes;
};

ExecutionResult judged(const Given& given) {
  Language language;
  language.out_of_memory_marks = {"MemoryError"};
  ExecutionResult result;
  result.stderr_bytes = given.stderr_bytes;
  judge_outcome(given.exited, given.events, language, ExecLimits{}, SandboxLimits{}, result);
  return result;
}

ExitedMessage ended(int exit_code, int signal = 0, EndCause cause = EndCause::kExited) {
  ExitedMessage message;
  message.exit_code = exit_code;
  message.signal = signal;
  message.cause = cause;
  return message;
}

}  // namespace

TEST_CASE("a program that ends by itself has its own exit code and no reason") {
  CHECK(judged({ended(0), {}, ""}).exit_code == 0);
  CHECK_FALSE(judged({ended(0), {}, "MemoryError"}).reason);
  const auto three = judged({ended(3), {}, ""});
  CHECK(three.exit_code == 3);
  CHECK_FALSE(three.reason);
}

TEST_CASE("every way to be stopped has its reason, exit code and sentence") {
  ExitedMessage disk_full = ended(1);
  disk_full.disk_full_seen = true;
  ExitedMessage crowded = ended(1);
  crowded.process_limit_seen = true;
  const struct {
    Given given;
    Reason reason;
    int exit_code;
  } rows[] = {
      {{ended(0, SIGKILL, EndCause::kTimeout), {}, ""}, Reason::kTimeout, 124},
      {{ended(0, SIGKILL, EndCause::kOutputLimit), {}, ""}, Reason::kOutputLimit, 137},
      {{ended(0, SIGKILL, EndCause::kMemoryLimit), {}, ""}, Reason::kMemoryLimit, 137},
      {{ended(0, SIGKILL, EndCause::kDiskLimit), {}, ""}, Reason::kDiskLimit, 137},
      {{ended(0, SIGKILL, EndCause::kKilled), {}, ""}, Reason::kCancelled, 137},
      {{ended(0, SIGKILL), {1, 0}, ""}, Reason::kMemoryLimit, 137},
      {{ended(1), {1, 0}, ""}, Reason::kMemoryLimit, 1},
      {{ended(1), {}, "Traceback\nMemoryError\n"}, Reason::kMemoryLimit, 1},
      {{ended(0, SIGXFSZ), {}, ""}, Reason::kDiskLimit, 128 + SIGXFSZ},
      {{disk_full, {}, ""}, Reason::kDiskLimit, 1},
      {{ended(1), {0, 5}, ""}, Reason::kProcessLimit, 1},
      {{crowded, {}, ""}, Reason::kProcessLimit, 1},
      {{ended(0, SIGSEGV), {}, ""}, Reason::kSignal, 139},
      {{ended(0, SIGKILL), {}, ""}, Reason::kSignal, 137},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(reason_name(row.reason)));
    const auto result = judged(row.given);
    CHECK(result.reason == row.reason);
    CHECK(result.exit_code == row.exit_code);
    CHECK_FALSE(result.notes.empty());
  }
}

TEST_CASE("a killed helper process of a program that succeeded is told in a note only") {
  const auto result = judged({ended(0), {2, 0}, ""});
  CHECK_FALSE(result.reason);
  CHECK(result.notes.size() == 1);
}

TEST_CASE("an error of ours keeps what the program had printed") {
  ExecutionResult result;
  result.stderr_bytes = "partial";
  judge_error(Error{ErrorCode::kBackendUnavailable, "the sandbox went away.", "Try again."}, result);
  CHECK(result.reason == Reason::kBackendUnavailable);
  CHECK(result.exit_code == 1);
  CHECK(result.stderr_bytes == "partial\nthe sandbox went away. Try again.");
}
