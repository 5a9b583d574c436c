#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>

#include "sandbox/engine.h"
#include "sandbox/session.h"
#include "support/processes.h"

/// What every backend must do, whatever it is made of. The backend under test is named by the environment variable
/// CONTRACT_BACKEND; tests/CMakeLists.txt runs the whole suite once for each.
namespace llm_sandbox::contract {

std::string backend_name();

/// One engine for the whole suite, with the default limits.
Engine& engine();
/// An engine of its own, for tests that need other settings.
std::unique_ptr<Engine> engine_with(EngineConfig config);

/// Runs a Python program with the engine of the suite.
ExecutionResult python(const std::string& code, std::chrono::milliseconds timeout = std::chrono::seconds(60));

/// A sandbox of its own, open.
Session open_session();

/// Whether the backend fully enforces what its capability of that name says.
bool is_held(const std::string& capability);

/// A text that no other test run uses.
std::string unique_marker();

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace llm_sandbox::contract
