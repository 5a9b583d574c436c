#include <unistd.h>

#include <cstdio>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace llm_sandbox {
namespace {

void print_summary(const LanguageReport& report) {
  const std::string name =
      report.language->name + std::string(12 - std::min<size_t>(11, report.language->name.size()), ' ');
  if (report.available)
    return print(styled(STDOUT_FILENO, Style::kGood, name) + report.version + "  " + report.executable + "\n");
  print(styled(STDOUT_FILENO, Style::kBad, name) + "not found; install with: " + report.how_to_install + "\n");
}

void print_details(const LanguageReport& report) {
  print_summary(report);
  for (const auto& rejected : report.rejected) print("  passed over: " + rejected.path + ": " + rejected.why + "\n");
  if (report.libraries.empty()) return;
  print("  libraries:\n");
  for (const auto& library : report.libraries) print("    " + library + "\n");
}

}  // namespace

int languages_command(const Settings& settings, const std::string& name) {
  Engine engine(settings.engine_config(), settings.lookup(), settings.backend_factory());
  if (!engine.config().runtime) {
    write_all(STDERR_FILENO, "llm-sandbox: " + engine.config().runtime.error().text() + "\n");
    return 2;
  }
  if (name.empty()) {
    for (const auto& language : engine.languages().all()) print_summary(engine.report(language));
    return 0;
  }
  const Language* language = engine.languages().find(name);
  if (language == nullptr) {
    write_all(STDERR_FILENO, "llm-sandbox: unsupported language '" + name + "'. Supported are " +
                                 join(engine.languages().names(), ", ") + ".\n");
    return 2;
  }
  const LanguageReport report = engine.report(*language);
  print_details(report);
  return report.available ? 0 : 1;
}

}  // namespace llm_sandbox
