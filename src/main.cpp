#include <signal.h>

#include <cstdio>
#include <exception>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // a reader that is gone is an error of write(2), handled where it happens
  try {
    return llm_sandbox::run_command_line(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llm-sandbox: unexpected error: %s\n", error.what());
    return 70;
  }
}
