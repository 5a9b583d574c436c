#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/bubblewrap/host_layout.h"
#include "sandbox/sandbox.h"

namespace llm_sandbox {

/// A file made inside the sandbox from what a descriptor of the bwrap process gives.
struct DataFile {
  std::string path;
  int descriptor = -1;
};

/// All that the command line of bwrap depends on.
struct BwrapPlan {
  HostLayout layout;
  std::vector<std::string> runtime_mounts;
  std::vector<DataFile> files;
  std::vector<SandboxMount> mounts;
  uint64_t disk_bytes = 0;  ///< /tmp and the workspace together
  bool share_network = false;
  int seccomp_descriptor = -1;
  std::vector<std::string> program;
};

/// A file of the sandbox's own in place of the host's.
struct SyntheticFile {
  std::string path;
  std::string content;
};
/// /etc/passwd, group, hosts, hostname: one user `sandbox` (1000), home /tmp, shell /bin/sh.
const std::vector<SyntheticFile>& synthetic_files();

/// The whole argv of bwrap (0.8.0 or newer), "bwrap" included: the list of what contains a program, in the order in
/// which it is set up.
std::vector<std::string> bwrap_arguments(const BwrapPlan& plan);

}  // namespace llm_sandbox
