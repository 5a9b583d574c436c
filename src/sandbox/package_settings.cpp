#include "sandbox/package_settings.h"

#include <re2/re2.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "languages/host_paths.h"

namespace llm_sandbox {
namespace {

constexpr std::streamsize kMaxFileBytes = 1 << 20;

/// Which certificates to trust, by the names that the libraries under the managers know.
constexpr std::array<const char*, 6> kCertificates = {"SSL_CERT_FILE",  "SSL_CERT_DIR",        "REQUESTS_CA_BUNDLE",
                                                      "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"};

bool is_proxy(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.ends_with("_proxy");  // PIP_PROXY and the like, too
}

bool matches(const std::string& name, const std::string& pattern) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

bool is_wanted(const std::string& name, const PackageManager& packages) {
  if (is_proxy(name)) return false;
  if (std::find(kCertificates.begin(), kCertificates.end(), name) != kCertificates.end()) return true;
  return std::any_of(packages.settings.begin(), packages.settings.end(),
                     [&](const auto& pattern) { return matches(name, pattern); });
}

bool may_be_folder(const std::string& name, const PackageManager& packages) {
  const auto& names = packages.settings_folders;
  return name == "SSL_CERT_DIR" || std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<std::string> small_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kMaxFileBytes) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  std::string content(static_cast<size_t>(info.st_size), '\0');
  if (!stream.read(content.data(), info.st_size)) return std::nullopt;
  return content;
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// Shows a file or folder at its own place; a file that the sandbox's user may not reach is copied.
void show(const std::string& path, const std::function<bool(const std::string&)>& can_show, PackageSettings& settings) {
  if (!path.starts_with('/') || in_base_system(path)) return;
  if (can_show(path)) {
    settings.mounts.push_back({path, path});
  } else if (auto content = small_file(path)) {
    settings.files.push_back({path, std::move(*content)});
  }
}

/// A folder of settings, which its own files are.
void show_folder(const std::string& path, const std::function<bool(const std::string&)>& can_show,
                 PackageSettings& settings) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    if (auto content = small_file(file)) settings.texts.push_back(std::move(*content));
  show(path, can_show, settings);
}

}  // namespace

PackageSettings gather_package_settings(const PackageManager& packages, const EnvironmentLookup& environment,
                                        const std::vector<std::string>& names,
                                        const std::function<bool(const std::string&)>& can_show) {
  PackageSettings settings;
  const std::string home = environment("HOME").value_or("");
  for (const auto& name : names) {
    if (!is_wanted(name, packages)) continue;
    const auto value = environment(name);
    if (!value || value->empty()) continue;
    settings.environment.push_back(name + "=" + *value);
    settings.texts.push_back(settings.environment.back());
    if (auto content = value->starts_with('/') ? small_file(*value) : std::nullopt) {
      settings.texts.push_back(std::move(*content));
      show(*value, can_show, settings);
    } else if (may_be_folder(name, packages) && is_folder(*value) && !too_wide(*value, home)) {
      show(*value, can_show, settings);
    }
  }
  for (const auto& file : packages.settings_files) {
    const bool of_home = file.starts_with("~/");
    const std::string path = of_home ? home + file.substr(1) : file;
    if (!of_home && is_folder(path)) {
      show_folder(path, can_show, settings);
      continue;
    }
    auto content = small_file(path);
    if (!content) continue;
    settings.texts.push_back(*content);
    if (of_home)
      settings.home_files.emplace_back(file.substr(2), std::move(*content));
    else
      show(path, can_show, settings);
  }
  for (const auto& path : packages.shown) show(path, can_show, settings);
  return settings;
}

std::string without_credentials(std::string text) {
  // Never destroyed: a thread may outlive the statics.
  static const RE2& credentials = *new RE2("://[^[:space:]'\"<>]*@");  // a password may hold any of / and @
  RE2::GlobalReplace(&text, credentials, "://…@");
  return text;
}

}  // namespace llm_sandbox
