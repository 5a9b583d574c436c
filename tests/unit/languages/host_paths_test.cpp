#include "languages/host_paths.h"

#include <doctest/doctest.h>

#include "temp_folder.h"

using namespace llm_sandbox;
namespace fs = std::filesystem;

TEST_CASE("the base system is /usr and what belongs to it, by whole components") {
  for (const auto* path : {"/usr", "/usr/local/bin/node", "/lib/x", "/lib64", "/bin/sh", "/sbin"}) {
    CAPTURE(path);
    CHECK(in_base_system(path));
  }
  for (const auto* path : {"/", "/usrlocal", "/opt/usr", "/library", "/home/u/bin"}) {
    CAPTURE(path);
    CHECK_FALSE(in_base_system(path));
  }
}

TEST_CASE("folders to show are few, real, and also what they are called") {
  const TempFolder temp;
  temp.folder("py/3.12/lib/python3.12");
  fs::create_directory_symlink(temp.path("py/3.12"), temp.path("current"));
  CHECK(folders_to_show({"/usr", temp.path("py/3.12"), temp.path("py/3.12/lib"), temp.path("py/3.12/"),
                         temp.path("absent")}) == std::vector<std::string>{temp.path("py/3.12")});
  CHECK(folders_to_show({temp.path("current")}) ==
        std::vector<std::string>{temp.path("current"), temp.path("py/3.12")});
}

TEST_CASE("a folder that holds more than a runtime is too wide") {
  for (const auto* folder : {"/", "/home", "/home/u", "/home/other", "/root", "/etc", "/tmp", "/opt", "/srv/people"}) {
    CAPTURE(folder);
    CHECK(too_wide(folder, folder == std::string("/srv/people") ? "/srv/people/u" : "/home/u"));
  }
  for (const auto* folder : {"/home/u/.pyenv/versions/3.12.1", "/opt/conda", "/venv", "/root/.nvm/versions/node/v20"}) {
    CAPTURE(folder);
    CHECK_FALSE(too_wide(folder, "/home/u"));
  }
}

TEST_CASE("a link that leaves what is shown is named") {
  const TempFolder temp;
  temp.file("base/bin/python3.12", "");
  temp.folder("venv/bin");
  fs::create_symlink("python3", temp.path("venv/bin/python"));
  fs::create_symlink("../../base/bin/python3.12", temp.path("venv/bin/python3"));
  const std::string file = temp.path("venv/bin/python");
  CHECK(uncovered_link(file, {temp.path("venv"), temp.path("base")}) == "");
  CHECK(uncovered_link(file, {temp.path("venv")}) == temp.path("base/bin/python3.12"));
  CHECK(uncovered_link(file, {temp.path("base")}) == file);
  fs::create_symlink("loop", temp.path("loop"));
  CHECK(uncovered_link(temp.path("loop"), {"/opt"}) != "");
}

TEST_CASE("places are expanded, the newest version first") {
  const TempFolder temp;
  for (const auto* version : {"3.9.1", "3.10.2", "3.12.0"}) temp.folder(std::string("versions/") + version + "/bin");
  temp.file("versions/3.13.0/bin", "not a folder");
  CHECK(expand_place("~/versions/*/bin", temp.path()) == std::vector<std::string>{temp.path("versions/3.12.0/bin"),
                                                                                  temp.path("versions/3.10.2/bin"),
                                                                                  temp.path("versions/3.9.1/bin")});
  CHECK(expand_place("~/versions/*/bin", "").empty());
  CHECK(expand_place("/nowhere/*/bin", temp.path()).empty());
}
