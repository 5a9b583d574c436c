#include <signal.h>

#include <cstdio>
#include <exception>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  // A reader that is gone and a file that may not grow are errors of write(2), handled where they happen.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  try {
    return llm_sandbox::run_command_line(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llm-sandbox: unexpected error: %s\n", error.what());
    return 70;
  }
}
