#include "backends/registry.h"

#include <doctest/doctest.h>

using namespace llm_sandbox;

TEST_CASE("the registry knows all backends of the contract, in its order, and which of them it can make") {
  CHECK(backend_names() == std::vector<std::string>{"docker", "podman", "kubernetes", "micromamba", "bubblewrap",
                                                    "nsjail", "windows-mxc", "wsl2-bubblewrap"});
  CHECK(available_backend_names() == std::vector<std::string>{"bubblewrap"});
}

TEST_CASE("backend names are taken in any case, with blanks around and underscores") {
  for (const std::string name : {"bubblewrap", " Bubblewrap\n", "BUBBLEWRAP"}) {
    CAPTURE(name);
    const auto backend = make_backend(name);
    REQUIRE(backend);
    CHECK((*backend)->name() == "bubblewrap");
  }
  CHECK(make_backend("Windows_MXC").error().code == ErrorCode::kBackendUnavailable);
}

TEST_CASE("a backend that this version lacks is named with those that it has") {
  for (const auto& name : backend_names()) {
    if (name == "bubblewrap") continue;
    CAPTURE(name);
    const auto backend = make_backend(name);
    REQUIRE_FALSE(backend);
    CHECK(backend.error().code == ErrorCode::kBackendUnavailable);
    CHECK(backend.error().sentence ==
          "Backend '" + name + "' is not part of this version of llm-sandbox, which has: bubblewrap.");
    CHECK_FALSE(backend.error().hint.empty());
  }
}

TEST_CASE("an unknown backend gets the list and the nearest name") {
  struct Row {
    std::string name;
    const char* hint;
  };
  for (const auto& [name, hint] :
       {Row{"bublewrap", "Did you mean BACKEND=bubblewrap?"}, Row{"Dokcer", "Did you mean BACKEND=docker?"},
        Row{"wsl2_bubblewrp", "Did you mean BACKEND=wsl2-bubblewrap?"}, Row{"firecracker", ""}, Row{"", ""}}) {
    CAPTURE(name);
    const auto backend = make_backend(name);
    REQUIRE_FALSE(backend);
    CHECK(backend.error().code == ErrorCode::kInvalidArgument);
    CHECK(backend.error().sentence.find("docker, podman, kubernetes") != std::string::npos);
    CHECK(backend.error().hint == hint);
  }
}

TEST_CASE("without a name the first usable backend is taken, or each one's reason is told") {
  const auto backend = make_default_backend();
  if (backend) {
    CHECK((*backend)->name() == "bubblewrap");
    return;
  }
  CHECK(backend.error().code == ErrorCode::kBackendUnavailable);
  CHECK(backend.error().sentence.find("bubblewrap: ") != std::string::npos);
}
