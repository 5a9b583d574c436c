#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace llm_sandbox {

/// What kind of failure an Error is. The edge (tool result, exit status) decides by it; the sentence is for people.
enum class ErrorCode {
  kInvalidArgument,     ///< the caller asked for something that makes no sense
  kPolicy,              ///< refused by a security policy or a limit of the configuration
  kBackendUnavailable,  ///< no sandbox can be made here and now
  kRuntimeMissing,      ///< the language's interpreter or compiler is not installed or not reachable
  kInstallFailed,       ///< a package could not be installed
  kBusy,                ///< a bounded queue is full
  kCancelled,           ///< the caller gave up
  kTimeout,             ///< a deadline of ours passed
  kNotFound,            ///< a file that was asked for does not exist
  kTooLarge,            ///< a bound on size or number was exceeded
  kProtocol,            ///< the other side of a channel broke the rules
  kIo,                  ///< the operating system refused
};

/// A failure of ours (never of the user's program, whose fate is a value in ExecutionResult).
/// `sentence` says what failed, on what and why; `hint`, where known, says what to do about it.
struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string sentence;
  std::string hint = {};

  /// The same error seen from one level further out: "outer: sentence".
  Error within(std::string_view outer) && {
    sentence = std::string(outer) + ": " + sentence;
    return std::move(*this);
  }

  /// Sentence and hint in one text.
  std::string text() const { return hint.empty() ? sentence : sentence + " " + hint; }
};

template <typename T>
using Result = tl::expected<T, Error>;

/// `return fail(ErrorCode::kIo, "...")` in a function that returns a Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string sentence, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(sentence), std::move(hint)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// An Error from errno: "what: No such file or directory".
Error errno_error(std::string_view what, int error_number);
inline tl::unexpected<Error> fail_errno(std::string_view what, int error_number) {
  return tl::unexpected<Error>(errno_error(what, error_number));
}

}  // namespace llm_sandbox
