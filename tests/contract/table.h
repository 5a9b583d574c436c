#pragma once

#include <string>
#include <vector>

#include "contract.h"

namespace llm_sandbox::contract {

/// A program and what has to come of it.
struct Case {
  std::string what;
  std::string code;
  std::string out;  ///< all of it
  int exit_code = 0;
  std::string err_part = {};  ///< empty: nothing on stderr
};

inline ExecutionResult run_in(const std::string& language, const std::string& code,
                              std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  ExecutionRequest request;
  request.language = language;
  request.code = code;
  request.timeout = timeout;
  return engine().run(request, {});
}

inline bool is_here(const std::string& language) {
  const bool here = engine().report(*engine().languages().find(language)).available;
  if (!here) MESSAGE("skipped: " << language);
  return here;
}

/// Each program ends by itself, as it says.
inline void check_cases(const std::string& language, const std::vector<Case>& cases) {
  if (!is_here(language)) return;
  for (const auto& one : cases) {
    CAPTURE(one.what);
    const auto result = run_in(language, one.code);
    CAPTURE(result.stderr_bytes);
    CHECK_FALSE(result.reason);
    CHECK(result.exit_code == one.exit_code);
    CHECK(result.stdout_bytes == one.out);
    CHECK(result.stderr_bytes.empty() == one.err_part.empty());
    CHECK(contains(result.stderr_bytes, one.err_part));
    CHECK_FALSE(contains(result.stderr_bytes, "llm-sandbox"));  // a runner is not seen
  }
}

/// What get_language_details gives as examples runs, prints or draws.
inline void check_examples(const std::string& language) {
  if (!is_here(language)) return;
  for (const auto& example : engine().languages().find(language)->examples) {
    CAPTURE(example.title);
    const auto result = run_in(language, example.code);
    CAPTURE(result.stderr_bytes);
    if (contains(result.stderr_bytes, "No module named 'matplotlib'")) {
      MESSAGE("skipped: matplotlib");
      continue;
    }
    CHECK_FALSE(result.reason);
    CHECK(result.exit_code == 0);
    CHECK(result.stderr_bytes == "");
    CHECK((!result.stdout_bytes.empty() || !result.artifacts.empty()));
  }
}

}  // namespace llm_sandbox::contract
