#include <unistd.h>

#include "backends/registry.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace llm_sandbox {
namespace {

void line(const std::string& text) { print(text + "\n"); }

std::string mark(Style style, std::string_view text) { return styled(STDOUT_FILENO, style, text); }

void print_capability(const Capability& capability) {
  switch (capability.level) {
    case Capability::Level::kSupported:
      return line("    " + mark(Style::kGood, "yes") + "       " + capability.name + ": " + capability.detail);
    case Capability::Level::kDegraded:
      return line("    " + mark(Style::kWarning, "degraded") + "  " + capability.name + ": " + capability.detail);
    case Capability::Level::kUnsupported:
      return line("    " + mark(Style::kBad, "no") + "        " + capability.name + ": " + capability.detail);
  }
}

bool check_backend(const std::string& name) {
  auto backend = make_backend(name);
  if (!backend) {
    line(mark(Style::kDim, name + ": not part of this version"));
    return false;
  }
  const Probe probe = (*backend)->probe();
  if (!probe.usable) {
    line(mark(Style::kBad, name + ": not usable"));
    line("    why:  " + probe.detail);
    if (!probe.mend.empty()) line("    mend: " + probe.mend);
    return false;
  }
  line(mark(Style::kGood, name + ": usable") + " (" + probe.detail + ")");
  for (const auto& capability : (*backend)->capabilities()) print_capability(capability);
  return true;
}

/// Whether a call would work as configured, and if not, why.
bool check_configuration(const Settings& settings, Engine& engine) {
  const EngineConfig& config = engine.config();
  if (!config.runtime) {
    line(mark(Style::kBad, "configuration: ") + config.runtime.error().text());
    return false;
  }
  const auto backend = engine.backend();
  if (!backend) {
    line(mark(Style::kBad, "configuration: ") + backend.error().text());
    return false;
  }
  if (const auto checked = (*backend)->check(*config.runtime); !checked) {
    line(mark(Style::kBad, "configuration: ") + checked.error().text());
    return false;
  }
  const auto named = settings.get("BACKEND");
  line(mark(Style::kGood, "configuration: ") + "calls run with " + std::string((*backend)->name()) +
       (named ? " (" + named->origin + ")" : " (the first usable one)"));
  return true;
}

void check_language(const LanguageReport& report) {
  if (report.available)
    line(mark(Style::kGood, report.language->name + ": ") + report.version + ", " + report.executable);
  else
    line(mark(Style::kBad, report.language->name + ": ") + "not found; install with: " + report.how_to_install);
  for (const auto& rejected : report.rejected) line("    passed over: " + rejected.path + ": " + rejected.why);
}

}  // namespace

int doctor_command(const Settings& settings) {
  line(mark(Style::kBold, "Backends"));
  for (const auto& name : backend_names()) check_backend(name);

  Engine engine(settings.engine_config(), settings.lookup(), settings.backend_factory());
  line(mark(Style::kBold, "\nThis configuration"));
  const bool works = check_configuration(settings, engine);

  line(mark(Style::kBold, "\nLanguages"));
  for (const auto& language : engine.languages().all()) check_language(engine.report(language));
  return works ? 0 : 1;
}

}  // namespace llm_sandbox
