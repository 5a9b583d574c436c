#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "sandbox/agent/messages.h"

namespace llm_sandbox::agent {

/// What a request came to: a value, or the kError that answers it.
template <typename T>
using Outcome = tl::expected<T, ErrorMessage>;

inline tl::unexpected<ErrorMessage> refuse(int error_number, std::string what) {
  return tl::unexpected<ErrorMessage>(ErrorMessage{error_number, std::move(what)});
}

}  // namespace llm_sandbox::agent
