#pragma once

namespace llm_sandbox {

/// Reads the command line and does what it says; the exit status of the process (2: the command line makes no sense).
int run_command_line(int argc, char** argv);

}  // namespace llm_sandbox
