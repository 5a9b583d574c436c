#pragma once

#include <optional>
#include <string>
#include <vector>

namespace llm_sandbox {

/// Whether `path` is `folder` or below it, by their spelling.
bool is_within(const std::string& path, const std::string& folder);
bool is_within_any(const std::string& path, const std::vector<std::string>& folders);

/// Whether every sandbox shows the path anyway: /usr and the folders beside it that belong to the base system.
bool in_base_system(const std::string& path);

/// The path without symbolic links; empty if there is nothing at it.
std::string canonical(const std::string& path);
/// The same for its folder only: the last component stays, though it may be a link.
std::string canonical_folder(const std::string& path);

/// The folder that a program is installed in: that above the "bin" which holds it, else the one which holds it.
std::string prefix_of(const std::string& executable);

/// The folders that must be shown so that all of `places` are seen at their own spelling: none of the base system, none
/// below another one, sorted. A place that is reached through a link counts under both names; one that does not exist
/// counts for nothing.
std::vector<std::string> folders_to_show(const std::vector<std::string>& places);

/// Whether a folder holds more than a runtime: a home folder or one above it, /, /etc, /tmp and their like.
bool too_wide(const std::string& folder, const std::string& home);

/// The first place on the way from `file` along its symbolic links to the real file that neither the base system nor
/// `shown` covers; empty if all are covered.
std::string uncovered_link(const std::string& file, const std::vector<std::string>& shown);

/// The existing folders that a place of a language file means: "~/" is `home` (nothing if that is empty), "*" any name;
/// several matches come newest version first.
std::vector<std::string> expand_place(const std::string& place, const std::string& home);

}  // namespace llm_sandbox
