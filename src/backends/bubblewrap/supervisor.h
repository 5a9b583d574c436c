#pragma once

namespace llm_sandbox {

/// Stands between server and bwrap for a sandbox's whole life, so that nothing in it outlives the server or its
/// closing. Starts the program and watches `lifeline`, a pipe that the server holds open. When the program ends or the
/// lifeline does (closed on purpose, or because the server is gone, however it went), everything below this process is
/// killed, one process after another until none is left: killing a PID namespace by its first process alone fails while
/// that one sleeps uninterruptibly, and a bwrap that dies between clone and set-up leaves a child that nobody else
/// would look for. Never returns: ends with the program's exit status, 128 + n for signal n, 125 if it could not be
/// started. The calling process must be single-threaded. All its descriptors but `lifeline` go to the program.
[[noreturn]] void supervise(char** program, int lifeline);

}  // namespace llm_sandbox
